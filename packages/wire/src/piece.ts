import type { ModelChunk } from '@millrace/core';

/** What a frame says: a piece of the answer, or that nothing follows. */
export type Piece = ModelChunk | { readonly type: 'done' };
