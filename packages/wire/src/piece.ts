import type { ModelChunk } from '@millrace/core';

/** A chunk of the answer, or the sign that nothing follows. */
export type Piece = ModelChunk | { readonly type: 'done' };
