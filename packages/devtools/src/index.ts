export type { Breakpoint } from './page/protocol.js';
