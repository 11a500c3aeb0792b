import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository, slugOf } from '../../../scripts/docs/links.mjs';
import { sidebars, sitePages } from '../../../scripts/docs/pages.mjs';

const base = process.env.MILLRACE_SITE_BASE ?? '/';
const pages = sitePages();

const isApi = (path) => path.startsWith('api/');

/** Comments of the light theme, with a contrast of 4.5 to 1. */
const withContrast = (html) => html.replaceAll('#6E7781', '#59626A');

/** What a renderer returned for the same code before. Pages are rendered twice: to be shown, and to be found. */
function remembered(highlight) {
  const known = new Map();
  return (code, language, attributes) => {
    const key = [language, attributes, code].join('\0');
    if (!known.has(key)) known.set(key, withContrast(highlight(code, language, attributes)));
    return known.get(key);
  };
}

/** Braces are text on these pages, not expressions of Vue. */
function withPlainBraces(md) {
  for (const name of ['text', 'code_inline']) {
    const rule = md.renderer.rules[name];
    md.renderer.rules[name] = (...args) => rule(...args).replaceAll('{{', '&#123;&#123;');
  }
}

const readNames = () => {
  const file = join(import.meta.dirname, 'temp/names.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
};

/** In declarations of the API reference, names of types lead to their pages. */
function withLinksInCode(md) {
  const names = readNames();
  const fence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, index, options, env, self) => {
    const html = fence(tokens, index, options, env, self);
    const own = names[env.frontmatter?.entry];
    if (own === undefined || /^import /.test(tokens[index].content)) return html;
    const [declared] = env.relativePath.match(/[^/]+(?=\.md$)/);
    const others = Object.values(names);
    const linked = (word) => {
      const page = own[word] ?? names['millrace'][word] ?? others.find((it) => it[word])?.[word];
      return page === undefined || word === declared
        ? word
        : `<a href="${base}api/${page}">${word}</a>`;
    };
    return html.replaceAll(
      /(<span style="[^"]*">)([^<]+)/g,
      (_, tag, text) => `${tag}${text.replaceAll(/\b[A-Z]\w*/g, linked)}`,
    );
  };
}

/** A page of the API reference is one result: its headings are the same on every page. */
function searchable(source, env, md) {
  const html = md.render(source, env);
  if (env.frontmatter?.search === false || env.frontmatter?.layout === 'home') return '';
  if (!isApi(env.relativePath)) return html;
  return html
    .replaceAll(/<h([2-6])\b[^>]*>.*?<\/h\1>/g, '')
    .replaceAll(/<p class="source">.*?<\/p>/g, '');
}

export default {
  title: 'Millrace',
  description: 'ReAct agents as RxJS streams, in TypeScript',
  lang: 'en',
  base,
  srcDir: '.vitepress/temp/pages',
  outDir: 'dist',
  cacheDir: '.vitepress/temp/cache',
  metaChunk: true,
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}logo.svg` }],
    ['meta', { name: 'theme-color', content: '#0b6373' }],
  ],
  transformHead: ({ pageData }) => [
    ['meta', { property: 'og:title', content: pageData.title || 'Millrace' }],
    ['meta', { property: 'og:type', content: 'website' }],
  ],
  markdown: {
    theme: { light: 'github-light-default', dark: 'github-dark-default' },
    anchor: { slugify: slugOf },
    // Both read characters of ordinary text: `{…}` after code, and words between colons.
    attrs: { disable: true },
    emoji: { enabled: [] },
    languageAlias: { jsonl: 'json' },
    config(md) {
      md.options.highlight = remembered(md.options.highlight);
      withPlainBraces(md);
      withLinksInCode(md);
    },
  },
  themeConfig: {
    logo: { src: '/logo.svg', alt: '' },
    nav: [
      {
        text: 'Guide',
        link: '/start',
        activeMatch: '^/(start|guide/|architecture|contributing|changelog)',
      },
      { text: 'Packages', link: '/packages/', activeMatch: '^/packages/' },
      { text: 'Examples', link: '/examples/', activeMatch: '^/examples/' },
      { text: 'API', link: '/api/', activeMatch: '^/api/' },
    ],
    sidebar: sidebars(pages),
    outline: { level: [2, 3] },
    socialLinks: [{ icon: 'github', link: repository, ariaLabel: 'Source code' }],
    editLink: { pattern: ({ frontmatter }) => frontmatter.edit, text: 'Edit this page' },
    docFooter: { prev: 'Previous', next: 'Next' },
    externalLinkIcon: false,
    search: {
      provider: 'local',
      options: {
        _render: searchable,
        detailedView: true,
        miniSearch: {
          options: {
            // Words that every page has are not looked for.
            processTerm: (term) =>
              /^(?:an?|and|are|as|at|be|by|can|do|does|for|from|how|i|in|is|it|its|my|of|on|or|that|the|this|to|what|when|where|why|with)$/i.test(
                term,
              )
                ? null
                : term.toLowerCase(),
          },
          searchOptions: {
            // Short words would match too many others.
            fuzzy: (term) => (term.length > 4 ? 0.2 : false),
            boost: { title: 4, titles: 2, text: 1 },
            // One page has the words that readers search for. The guide explains, the reference lists, and the rest is about
            // the making of Millrace.
            // The page gets the text of this function: it can use nothing outside.
            boostDocument: (id, term) => {
              // Sections that answer these words: others have them more often.
              const answers = [
                [/#approval$/, /^(?:human|loop|approve\w*)$/],
                [/\/devtools\.html#the-page$/, /^(?:prompt|turn)$/],
                [/#why-a-call-failed$/, /^throws$/],
                [/\/models\.html#retries-/, /^timeouts?$/],
                [/\/guide\/#stop-or-steer/, /^(?:abort|cancel)$/],
                [/\/guide\/#events$/, /^streaming$/],
                [/\/packages\/mcp\.html#millracemcp$/, /^mcp$/],
                [/\/production\.html#limits$/, /^budget$/],
              ];
              return answers.some(([page, words]) => page.test(id) && words.test(term))
                ? 5
                : /\/guide\/find\.html/.test(id)
                  ? 1.5
                  : /\/(decisions|changelog|contributing|architecture)\.html/.test(id)
                    ? 0.15
                    : /\/(rules\.html|not-exported\/)/.test(id)
                      ? 0.4
                      : /\/(api|examples)\//.test(id)
                        ? 0.6
                        : 1;
            },
          },
        },
      },
    },
    notFound: {
      title: 'Page not found',
      quote: 'Search for it, or begin at the home page.',
      linkLabel: 'Go to the home page',
      linkText: 'Home',
    },
    footer: { message: 'MIT licence' },
  },
};
