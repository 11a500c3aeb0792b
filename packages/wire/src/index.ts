export { type Access, type AccessSource, type Credentials, resolveAccess } from './access.js';
export type { AddressSource } from './address.js';
export { answerToolIf } from './answer-tool-if.js';
export { cachedSerializer, type Serializer, type WireNames } from './cached-serializer.js';
export { createCapCounter } from './cap-counter.js';
export { capExceeded, type Caps, capsOf, defaultCaps } from './caps.js';
export { blockIndex, missingCall, signatureChunks, textChunks } from './chunks.js';
export { decodeSignature, encodeSignature, isEncodedSignature } from './encoded-signature.js';
export { variable } from './environment.js';
export type { Endings, Exchange, Reader, WireEvent, WireRequest } from './exchange.js';
export { exchange$ } from './exchange-stream.js';
export { failure, type Fault } from './failure.js';
export { failureOf } from './failure-of.js';
export { faultOf } from './fault-of.js';
export { mergeBody } from './merge-body.js';
export { memoizeByObject, memoizeLast } from './memoize.js';
export { withNamePrefix } from './name-prefix.js';
export { optionHint } from './option-hint.js';
export { at, countAt, type JsonRecord, listAt, textAt } from './paths.js';
export {
  plainField,
  type RawJson,
  rawJson,
  rawJsonList,
  stringifyObject,
  type WithRawJson,
} from './raw-json.js';
export { redactChunk } from './redact-chunk.js';
export { redactError } from './redact-error.js';
export { type Redactor, redactorOf } from './redactor.js';
export type { HeadersLike } from './retry-after.js';
export { type SdkRequests, sdkRequests } from './sdk-requests.js';
export type { SdkClient, SdkOptions } from './sdk-target.js';
export {
  type ApiKey,
  checkModelCall,
  type ModelCall,
  settingsRules,
  type VendorSettings,
} from './settings.js';
export { toWireId } from './tool-call-id.js';
export { toolNames, type ToolNames } from './tool-names.js';
export { dependable, vendorModel, type VendorSpec } from './vendor-model.js';
