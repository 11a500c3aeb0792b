import {
  ELEMENT_NODE,
  type ElementNode,
  htmlToMarkdown,
  type Node,
  type TransformPlugin,
} from '@mdream/js';

/**
 * Converts HTML to Markdown with its headings: the main content, without navigation, forms and scripts. Links that are
 * neither relative nor web nor mail addresses, such as `javascript:` and `data:`, become plain text.
 *
 * Hostile HTML takes up to seconds for a megabyte, so only a thread calls it.
 */
export const toMarkdown = (html: string): { readonly title: string; readonly text: string } => {
  // Many documents do not mark their main content.
  const text = convert(html, true) || convert(html, false);
  return { title: titleIn(html), text };
};

const convert = (html: string, isolateMain: boolean): string =>
  htmlToMarkdown(html, {
    plugins: { isolateMain, filter: { exclude: excluded } },
    hooks: [withoutTitle, safeLinks],
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

const safeLinks: TransformPlugin = {
  beforeNodeProcess: ({ node }) => {
    if (!isElement(node)) return undefined;
    const { name, attributes } = node;
    for (const attribute of ['href', 'src']) {
      const address = attributes[attribute];
      if (address !== undefined && !isSafe(address)) Reflect.deleteProperty(attributes, attribute);
    }
    return name === 'img' && attributes['src'] === undefined ? { skip: true } : undefined;
  },
};

const isElement = (node: Node): node is ElementNode => node.type === ELEMENT_NODE;

/** Resolved as browsers do, which ignore white space and control characters before and within the scheme. */
const isSafe = (address: string): boolean => {
  if (!URL.canParse(address, 'http://relative.invalid/')) return false;
  const { protocol } = new URL(address, 'http://relative.invalid/');
  return ['http:', 'https:', 'mailto:'].includes(protocol);
};
