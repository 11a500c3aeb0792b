// The page as the build embeds it.

import type { PageAsset } from '@millrace/server/page';

/** The document. */
export declare const html: string;

/** Scripts and styles. Their names change with their content. */
export declare const assets: readonly PageAsset[];
