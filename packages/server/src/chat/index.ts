export { chatServer, type ChatServer, type ChatServerOptions, toResponse } from './chat-server.js';
export type { Authenticator } from './guard.js';
export type { HistoryUiMessage, HistoryUiPart } from './history.js';
export type { AccessEntry } from './routes.js';
export type { OnDisconnect } from './runs.js';
