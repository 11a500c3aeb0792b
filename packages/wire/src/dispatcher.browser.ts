import type * as node from './dispatcher.js';

/** Replaces `dispatcher.ts` in bundles for other platforms than Node: see `browser` in `package.json`. */
export const nodeTransfer: typeof node.nodeTransfer = () => undefined;

export const withoutLimits: typeof node.withoutLimits = (init) => init;
