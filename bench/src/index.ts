export type { Adapter, CallOptions, Conversation, Open, Setup } from './adapter.js';
