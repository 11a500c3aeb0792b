import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from '@jest/globals';
import { brokenLinks, linksOf, repository, rewriteLinks, slugOf } from './links.mjs';

it.each([
  ['Suspend and resume', 'suspend-and-resume'],
  ['`limits`: what a call may take', 'limits-what-a-call-may-take'],
  ['Retrieval (RAG)', 'retrieval-rag'],
  ['A -- b_c', 'a----b_c'],
])('%s has the anchor of GitHub', (heading, slug) => {
  expect(slugOf(heading)).toBe(slug);
});

it('rewrites links and pictures, but not code and comments', () => {
  const text = [
    'See [a](one.md), `[b](two.md)` and ![c](three.svg "Title").',
    '```ts',
    'call[d](four.md);',
    '```',
    '<!-- [e](five.md) -->',
    '[f]: six.md',
  ].join('\n');
  const seen = [];
  const rewritten = rewriteLinks(text, (target) => {
    seen.push(target);
    return `/${target}`;
  });
  expect(seen).toEqual(['one.md', 'three.svg', 'six.md']);
  expect(rewritten).toBe(
    text.replace('one.md', '/one.md').replace('three.svg', '/three.svg').replace('six', '/six'),
  );
  expect(rewriteLinks(text, (target) => target)).toBe(text);
});

const routes = new Map([
  ['README.md', 'start'],
  ['docs/tools.md', 'guide/tools'],
  ['packages/millrace/README.md', 'packages/millrace'],
]);

it.each([
  ['README.md', 'docs/tools.md#approval', '/guide/tools.md#approval'],
  ['packages/millrace/README.md', '../../docs/tools.md', '/guide/tools.md'],
  ['docs/tools.md', '../packages/millrace', '/packages/millrace.md'],
  [
    'docs/tools.md',
    '../packages/millrace/src/loop.ts',
    `${repository}/blob/main/packages/millrace/src/loop.ts`,
  ],
  ['docs/tools.md', '../packages/wire/src/', `${repository}/tree/main/packages/wire/src`],
  ['docs/tools.md', '#approval', '#approval'],
  ['docs/tools.md', 'https://rxjs.dev/guide', 'https://rxjs.dev/guide'],
])('%s: %s leads to %s', (source, target, expected) => {
  expect(linksOf(source, routes, () => {})(target)).toBe(expected);
});

it('collects pictures', () => {
  const pictures = [];
  const link = linksOf('docs/performance.md', routes, (path) => pictures.push(path));
  expect(link('performance.svg')).toBe('/docs/performance.svg');
  expect(pictures).toEqual(['docs/performance.svg']);
});

it('refuses a link to a file that is not there', () => {
  const link = linksOf('docs/tools.md', routes, () => {});
  expect(() => link('nowhere.md')).toThrow('docs/tools.md: nowhere.md does not exist.');
});

const site = (files) => {
  const folder = mkdtempSync(join(tmpdir(), 'site-'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
};

const checked = (files, base) => {
  const folder = site(files);
  try {
    return brokenLinks(folder, base);
  } finally {
    rmSync(folder, { recursive: true });
  }
};

it('finds the links of a site that lead nowhere', () => {
  const { found, pages, links } = checked({
    'index.html':
      '<a href="/guide/a.html#here">a</a> <a href="guide/a.html#there">b</a> <a href="/b.html">c</a>',
    'guide/a.html':
      '<h2 id="here"></h2><img src="../logo.svg"><a href="#here">d</a><a href="http://nowhere/">e</a><a href="https://rxjs.dev">f</a><script>"<a href=\\"/x\\">"</script>',
    'logo.svg': '<svg/>',
  });
  expect(found).toEqual([
    '/guide/a.html: http://nowhere/ is not a valid address',
    '/index.html: /b.html does not exist',
    '/index.html: guide/a.html#there has no such heading',
  ]);
  expect({ pages, links }).toEqual({ pages: 2, links: 7 });
});

it('finds links that leave the path of the site', () => {
  const page = '<a href="/millrace/">a</a> <a href="/start.html">b</a>';
  expect(checked({ 'index.html': page }, '/millrace/').found).toEqual([
    '/index.html: /start.html is outside of /millrace/',
  ]);
});
