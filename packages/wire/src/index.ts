export { type Access, type AccessSource, accessTo, type Credentials } from './access.js';
export type { AddressSource } from './address.js';
export { answerToolWhere } from './answer-tool-where.js';
export { bodyReader, type BodyReader } from './body-reader.js';
export { type Caps, defaultCaps } from './caps.js';
export { placeOf, signatureChunks, textChunks } from './chunks.js';
export { variable } from './environment.js';
export type { Exchange, Reader, WireEvent } from './exchange.js';
export { exchange$ } from './exchange-stream.js';
export { failure, type Fault } from './failure.js';
export { faultOf } from './fault-of.js';
export { guardedFetch } from './guarded-fetch.js';
export { jsonList, type JsonText, jsonText, writeObject, type Written } from './json-text.js';
export { isKept, keep, kept } from './kept.js';
export { named } from './named.js';
export { nodeFetch, type NodeFetchOptions } from './node/node-fetch.js';
export { at, countAt, type JsonRecord, listAt, textAt } from './paths.js';
export type { HeadersLike } from './retry-after.js';
export { type SdkOptions, sdkOptions } from './sdk-options.js';
export {
  type ApiKey,
  checkModelCall,
  type ModelCall,
  settingsRules,
  type VendorSettings,
} from './settings.js';
export { toolNames, type ToolNames } from './tool-names.js';
export { vendorModel, type VendorSpec } from './vendor-model.js';
export { type SendOptions, withKey } from './with-key.js';
export { type Naming, type Write, writeOnce } from './write-once.js';
