import type { Citation } from 'millrace';

/** A citation without the data that only its vendor understands: plain JSON. */
export type CitationData = Pick<Citation, 'url' | 'title' | 'citedText'> &
  Pick<Citation, 'documentIndex' | 'fileId' | 'start' | 'end'> & {
    readonly location?: {
      readonly unit: string;
      readonly start: number;
      readonly end: number;
    };
  };

/** The address of a source that a client may link to; undefined for any other. */
export const linkOf = ({ url }: Citation): string | undefined =>
  url !== undefined && /^https?:\/\//iu.test(url) && URL.canParse(url) ? url : undefined;

export const citationData = ({ vendorData: _, ...citation }: Citation): CitationData => citation;
