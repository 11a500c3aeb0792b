import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { readJson, root } from '../workspaces.mjs';

/** Used if no package.json has a field `repository`. */
const defaultRepository = 'https://github.com/millrace/millrace';

/** The address of the repository, without a slash at its end. */
export const repository = (
  [root, join(root, 'packages/millrace')]
    .map((folder) => readJson(folder, 'package.json').repository)
    .map((field) => field?.url ?? field)
    .find((url) => url !== undefined) ?? defaultRepository
)
  .replace(/^git\+/, '')
  .replace(/\.git$/, '');

/** The page of the repository that shows a file or a folder. */
export const sourceAddress = (path) =>
  `${repository}/${statSync(join(root, path)).isDirectory() ? 'tree' : 'blob'}/main/${path}`;

/** The anchor that GitHub gives to a heading. A second heading of the same name gets `-1` from the renderer. */
export const slugOf = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');

/** Fenced code, code in a line, and comments: links in them are not links. */
const code = /(^ *(`{3,}|~{3,})[^]*?^ *\2`*$|`+[^`\n]+`+|<!--[^]*?-->)/m;
const link = /(\]\(\s*<?)([^)\s>]+)/g;
const definition = /^(\s*\[[^\]]+\]:\s*)(\S+)/gm;

/** Replaces the target of each link and image of a Markdown text. */
export function rewriteLinks(text, rewrite) {
  const replaced = (part) =>
    part
      .replaceAll(link, (_, before, target) => before + rewrite(target))
      .replaceAll(definition, (_, before, target) => before + rewrite(target));
  // `split` adds both groups of the pattern: the code, and its fence.
  const parts = text.split(code);
  return parts
    .map((part, index) => (index % 3 === 0 ? replaced(part) : index % 3 === 1 ? part : ''))
    .join('');
}

const isExternal = (target) => /^(?:[a-z][a-z\d+.-]*:|\/\/)/i.test(target);
const isPicture = (path) => /\.(?:svg|png|jpe?g|gif)$/.test(path);

/**
 * A function from the target of a link in a file of the repository to its target on the site. `routes` are the pages
 * by their sources; `onPicture` gets the path of each picture that has to be copied. Links to files that are not
 * there are thrown.
 */
export const linksOf = (source, routes, onPicture) => (target) => {
  if (isExternal(target) || target.startsWith('#')) return target;
  const [, path, anchor = ''] = /^([^#]*)(#.*)?$/.exec(target);
  const file = posix.join(posix.dirname(source), decodeURI(path)).replace(/\/$/, '');
  const route = routes.get(file) ?? routes.get(`${file}/README.md`);
  if (route !== undefined) return `/${route}.md${anchor}`;
  if (!existsSync(join(root, file))) throw new Error(`${source}: ${target} does not exist.`);
  if (isPicture(file)) {
    onPicture(file);
    return `/${file}`;
  }
  return sourceAddress(file) + anchor;
};

const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

const unescaped = (text) =>
  text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&');

const attributes = (html, names) =>
  [...html.matchAll(new RegExp(`\\s(?:${names})="([^"]*)"`, 'g'))].map(([, value]) =>
    unescaped(value),
  );

/** The links of a built site that lead nowhere, and what is wrong with each. Addresses of other hosts are not visited. */
export function brokenLinks(folder, base = '/') {
  const files = new Set(
    filesIn(folder).map((file) => posix.join('/', file.slice(folder.length).replaceAll('\\', '/'))),
  );
  const pages = new Map(
    [...files]
      .filter((file) => file.endsWith('.html'))
      .map((file) => {
        // The text of a page begins after its scripts.
        const html = readFileSync(join(folder, file), 'utf8').replaceAll(
          /<script\b[^]*?<\/script>/g,
          '',
        );
        return [
          file,
          { ids: new Set(attributes(html, 'id')), links: attributes(html, 'href|src') },
        ];
      }),
  );
  const problemOf = (page, target) => {
    if (isExternal(target)) return isWellFormed(target) ? undefined : 'is not a valid address';
    const { pathname, hash } = new URL(target, `http://site${posix.join(base, page)}`);
    if (!pathname.startsWith(base)) return `is outside of ${base}`;
    const path = decodeURI(pathname.slice(base.length - 1));
    const file = path.endsWith('/') ? `${path}index.html` : path;
    if (!files.has(file)) return 'does not exist';
    const anchor = decodeURIComponent(hash.slice(1));
    if (anchor !== '' && pages.get(file)?.ids.has(anchor) === false) return 'has no such heading';
    return undefined;
  };
  const found = [...pages].flatMap(([page, { links }]) =>
    [...new Set(links)].flatMap((target) => {
      const problem = problemOf(page, target);
      return problem === undefined ? [] : [`${page}: ${target} ${problem}`];
    }),
  );
  const count = [...pages.values()].reduce((sum, { links }) => sum + links.length, 0);
  return { found: found.sort(), pages: pages.size, links: count };
}

function isWellFormed(target) {
  if (!URL.canParse(target)) return false;
  const { protocol, hostname } = new URL(target);
  return protocol === 'mailto:' || (/^https?:$/.test(protocol) && /\.[a-z]{2,}$/i.test(hostname));
}
