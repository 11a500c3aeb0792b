import {
  ELEMENT_NODE,
  type ElementNode,
  htmlToMarkdown,
  type Node,
  type TransformPlugin,
} from '@mdream/js';

export interface Article {
  /** `''` if the document has no title. */
  readonly title: string;
  readonly text: string;
}

/**
 * Converts HTML to Markdown: the main content with its headings, without navigation, forms and scripts. Links are absolute if
 * the document has an address, and else as they are; those that are neither web nor mail addresses, such as `javascript:` and
 * `data:`, become plain text.
 *
 * It takes up to seconds for a megabyte of hostile HTML, so only a thread calls it.
 */
export const toMarkdown = (html: string, url?: string): Article => {
  // Many documents do not mark their main content.
  const text = convert(html, url, true) || convert(html, url, false);
  return { title: titleIn(html), text };
};

const convert = (html: string, url: string | undefined, isolateMain: boolean): string =>
  htmlToMarkdown(html, {
    plugins: { isolateMain, filter: { exclude: excluded } },
    hooks: [withoutTitle, url === undefined ? safeLinks : absoluteLinks(url)],
  }).trim();

/** The first `<title>`, which is outside the main content. */
const titleIn = (html: string): string => {
  const [, title = ''] = /<title[^<>]{0,200}>([^<]{1,1000})/iu.exec(html.slice(0, 100_000)) ?? [];
  return htmlToMarkdown(title, { format: 'text' }).replace(/\s+/gu, ' ').trim().slice(0, 200);
};

const excluded = [
  ...['nav', 'footer', 'aside', 'form', 'button', 'input', 'select', 'textarea', 'fieldset'],
  ...['script', 'style', 'noscript', 'template', 'iframe', 'object', 'embed', 'svg'],
];

const withoutTitle: TransformPlugin = {
  processTextNode: ({ parent }) =>
    parent?.name === 'title' ? { content: '', skip: true } : undefined,
};

/** Replaces each address of a link or an image, and drops those that become undefined. */
const withLinks = (linkOf: (address: string) => string | undefined): TransformPlugin => ({
  beforeNodeProcess: ({ node }) => {
    if (!isElement(node)) return undefined;
    const { name, attributes } = node;
    for (const attribute of ['href', 'src']) {
      const address = attributes[attribute];
      const link = address === undefined ? undefined : linkOf(address);
      if (link === undefined) Reflect.deleteProperty(attributes, attribute);
      else attributes[attribute] = link;
    }
    return name === 'img' && attributes['src'] === undefined ? { skip: true } : undefined;
  },
});

const nowhere = 'http://relative.invalid/';
const safeLinks = withLinks((address) =>
  resolved(address, nowhere) === undefined ? undefined : address,
);

/** Resolves links and images against the document, or its `<base>`. */
const absoluteLinks = (url: string): TransformPlugin => {
  let base = url;
  const { beforeNodeProcess } = withLinks((address) => resolved(address, base));
  return {
    beforeNodeProcess: (event, state) => {
      const { node } = event;
      if (isElement(node) && node.name === 'base')
        base = resolved(node.attributes['href'], url) ?? url;
      return beforeNodeProcess?.(event, state);
    },
  };
};

const isElement = (node: Node): node is ElementNode => node.type === ELEMENT_NODE;

/** As browsers do, which ignore white space and control characters before and within the scheme. */
const resolved = (address: string | undefined, base: string): string | undefined => {
  if (address === undefined || !URL.canParse(address, base)) return undefined;
  const { protocol, href } = new URL(address, base);
  return ['http:', 'https:', 'mailto:'].includes(protocol) ? href : undefined;
};
