// The page as the build embeds it.

import type { PageAsset } from '@millrace/server/page';

/** The document: `{title}`, `{api}`, `{tab}` and `{settings}` stand for the options. */
export declare const html: string;

/** Scripts and styles. Their names change with their content, but for `millrace-chat.js`, the script for other sites. */
export declare const assets: readonly PageAsset[];
