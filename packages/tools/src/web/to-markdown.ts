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
 * Converts HTML to Markdown: the main content, without navigation, forms and scripts. Links are absolute; those that
 * are neither web nor mail addresses, such as `javascript:` and `data:`, become plain text.
 *
 * It takes up to seconds for a megabyte of hostile HTML, so only a thread calls it.
 */
export const toMarkdown = (html: string, url: string): Article => {
  // Many documents do not mark their main content.
  const text = convert(html, url, true) || convert(html, url, false);
  return { title: titleIn(html), text };
};

const convert = (html: string, url: string, isolateMain: boolean): string =>
  htmlToMarkdown(html, {
    plugins: { isolateMain, filter: { exclude: excluded } },
    hooks: [withoutTitle, absoluteLinks(url)],
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

/** Resolves links and images against the document, or its `<base>`. */
const absoluteLinks = (url: string): TransformPlugin => {
  let base = url;
  return {
    beforeNodeProcess: ({ node }) => {
      if (!isElement(node)) return undefined;
      const { name, attributes } = node;
      if (name === 'base') base = resolved(attributes['href'], url) ?? url;
      for (const attribute of ['href', 'src']) {
        const address = resolved(attributes[attribute], base);
        if (address === undefined) Reflect.deleteProperty(attributes, attribute);
        else attributes[attribute] = address;
      }
      return name === 'img' && attributes['src'] === undefined ? { skip: true } : undefined;
    },
  };
};

const isElement = (node: Node): node is ElementNode => node.type === ELEMENT_NODE;

const resolved = (address: string | undefined, base: string): string | undefined => {
  if (address === undefined || !URL.canParse(address, base)) return undefined;
  const { protocol, href } = new URL(address, base);
  return ['http:', 'https:', 'mailto:'].includes(protocol) ? href : undefined;
};
