import type * as node from './dispatcher.js';

/** Replaces `dispatcher.ts` for the condition `browser`: bundlers set it for other platforms than Node. */
export const nodeTransfer: typeof node.nodeTransfer = () => undefined;

export const withoutLimits: typeof node.withoutLimits = (init) => init;
