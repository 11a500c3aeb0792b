// The page as `build.mjs` writes it.

/** A file of the page, compressed with gzip, in base64. */
export interface Asset {
  readonly name: string;
  readonly type: string;
  readonly gzip: string;
}

/** The document: `{title}` and `{api}` stand for the options. */
export declare const html: string;

/** Scripts and styles. Their names change with their content. */
export declare const assets: readonly Asset[];
