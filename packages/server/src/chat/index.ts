export { chatServer, type ChatServer, type ChatServerOptions, toResponse } from './chat-server.js';
export { type MountedServers, mountServers } from './mount-servers.js';
export type { Authenticator } from './guard.js';
export type { HistoryUiMessage, HistoryUiPart } from './history.js';
export type { AskedAlone } from './alone.js';
export type { Run } from './call-controls.js';
export type { Asked } from './starting.js';
export type { Past } from './past.js';
export type { ReadOptions } from './reading.js';
export type { Placing, ShownMessage } from './places.js';
export type {
  AskedOfChat,
  CallAlone,
  Chat,
  ChatProtocol,
  Route,
  ServerOfRoutes,
  StreamFormat,
  Visit,
} from './protocol.js';
export type { CallMetadata, CallRequest, ForRequest } from './for-request.js';
export type { ForeignPart, PartOptions } from '../inbound.js';
export type { AccessEntry } from './routes.js';
export type { OnDisconnect } from './runs.js';
