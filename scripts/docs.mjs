import { copyFileSync, cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { homePage } from './docs/home.mjs';
import { brokenLinks, linksOf, repository, rewriteLinks } from './docs/links.mjs';
import { entries, shown, sitePages } from './docs/pages.mjs';
import { serveFolder } from './docs/serve.mjs';
import { node, npm } from './run.mjs';
import { requireNode } from './set-up.mjs';
import { areInstalled } from './set-up/dependencies.mjs';
import { readJson, root } from './workspaces.mjs';

const help = `npm run docs -- [--base <path>] [--serve] [--check]

Builds the documentation as a site in docs/site/dist: the README, the guide, the packages, the examples and the API
reference, with llms.txt and llms-full.txt. What it needs has a lock file of its own, in docs/site, and is installed
first if it is not there.

  --base <path>  the path of the site on its host, such as /millrace/; default: /
  --serve        serves the site that was built last on 127.0.0.1, and builds it first if there is none
  --check        checks the links and anchors of the site after it is built; addresses of other hosts are not visited
  --no-api       leaves out the API reference: a build in half the time, for work on the pages
  --help         prints this text`;

const site = join(root, 'docs/site');
// Its name begins with a dot, so programs that search the docs do not find each page twice.
const staged = join(site, '.vitepress/temp/pages');
const built = join(site, 'dist');

// The .npmrc of the root does not reach this folder.
const flags = [
  '--include=dev',
  '--include=optional',
  '--loglevel=error',
  '--no-audit',
  '--no-fund',
];

async function main({ base, serve, check, 'no-api': withoutApi }) {
  requireNode();
  if (!serve || !existsSync(built)) {
    const code = await build(base, !withoutApi);
    if (code !== 0) return code;
  }
  if (check && !isLinked(base)) return 1;
  if (serve) console.log(`${(await serveFolder(built, base)).url} (Ctrl+C ends it)`);
  return 0;
}

async function build(base, hasApi) {
  process.env.MILLRACE_SITE_BASE = base;
  process.env.NODE_ENV = 'production';
  if (!areInstalled(root)) {
    const code = await step('Installing the workspace', () => npm(['ci', ...flags], quiet));
    if (code !== 0) return code;
  }
  if (!areInstalled(site)) {
    const code = await step('Installing what the site needs', () =>
      npm(['ci', '--prefix', site, ...flags], quiet),
    );
    if (code !== 0) return code;
  }
  rmSync(staged, { recursive: true, force: true });
  const pages = stagePages(hasApi);
  if (hasApi) {
    const code = await step('API reference', () =>
      node([join(site, 'api.mjs'), join(staged, 'api')], quiet),
    );
    if (code !== 0) return code;
  }
  writePage('api/index', hasApi ? apiIndex() : '# API reference\n\nThis build has none.\n');
  const code = await step('Site', () =>
    node([join(site, 'node_modules/vitepress/bin/vitepress.js'), 'build', site], quiet),
  );
  if (code !== 0) return code;
  writeForModels(pages, base);
  say(`The site is in docs/site/dist: npm run docs -- --serve`);
  return 0;
}

const quiet = { quiet: true };

async function step(name, work) {
  say(`${name} …`);
  const start = performance.now();
  const { code, output } = await work();
  if (code === 0) say(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s.`);
  else say(code > 128 ? 'Stopped.' : `${output.trimEnd()}\n\n${name}: failed.`);
  return code;
}

function say(line) {
  process.stderr.write(`${line}\n`);
}

function writePage(route, text) {
  const file = join(staged, `${route}.md`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Writes the pages with links that work on the site, and copies their pictures. */
function stagePages(hasApi) {
  const pages = sitePages();
  const routes = new Map(pages.map(({ source, route }) => [source, route]));
  const pictures = new Set();
  const linked = pages.map((page) => ({
    ...page,
    text: rewriteLinks(
      shown(page.text),
      page.isIndex ? (target) => target : linksOf(page.source, routes, (it) => pictures.add(it)),
    ),
  }));
  for (const page of linked)
    writePage(page.route, matterOf(page) + page.text + (hasApi ? apiOf(page) : ''));
  writePage('index', homePage());
  cpSync(join(site, 'public'), join(staged, 'public'), { recursive: true });
  for (const picture of pictures) {
    const target = join(staged, 'public', picture);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(root, picture), target);
  }
  return linked;
}

/** What the theme has to know of a page. An example is wide, and has no headings to list beside it. */
const matterOf = ({ source, section, isIndex }) =>
  [
    '---',
    isIndex ? 'editLink: false' : `edit: ${repository}/edit/main/${source}`,
    ...(section === 'examples' || isIndex ? ['aside: false'] : []),
    '---\n\n',
  ].join('\n');

const linkTo = ({ name, route }) => `[\`${name}\`](/api/${route}/index.md)`;

/** Links from the page of a package to its API reference. */
function apiOf({ source }) {
  const [, folder] = /^packages\/([^/]+)\/README\.md$/.exec(source) ?? [];
  const own = entries().filter((entry) => entry.folder === folder);
  return own.length === 0
    ? ''
    : `\n## API reference\n\n${own.map((it) => `- ${linkTo(it)}`).join('\n')}\n`;
}

const apiIndex = () => {
  const folders = [...new Set(entries().map(({ folder }) => folder))];
  const row = (folder) => {
    const [main, ...others] = entries().filter((entry) => entry.folder === folder);
    const { description } = readJson(root, 'packages', folder, 'package.json');
    const links = others.map((it) => linkTo({ ...it, name: it.name.slice(main.name.length) }));
    return `| ${linkTo(main)} | ${[description, links.join(' ')].join('<br>').replace(/<br>$/, '')} |`;
  };
  return [
    '---\neditLink: false\naside: false\n---',
    '',
    '# API reference',
    '',
    'Every public name of every package, by the entry that exports it. The [guide](/guide/index.md) explains how they fit together.',
    '',
    '| Package | Description, and other entries |',
    '| --- | --- |',
    ...folders.map(row),
    '',
  ].join('\n');
};

/** Writes llms.txt (https://llmstxt.org), llms-full.txt, and each page as Markdown at its own address. */
function writeForModels(pages, base) {
  const absolute = (text) =>
    rewriteLinks(text, (target) => (target.startsWith('/') ? base + target.slice(1) : target));
  const listed = pages.filter(({ isIndex }) => !isIndex);
  const required = listed.filter(({ isOptional }) => !isOptional);
  const groups = [
    ...new Set(required.map(({ group }) => group)),
    // Readers with little room leave this section out.
    'Optional',
  ];
  const list = groups.flatMap((name) => [
    `## ${name}`,
    '',
    ...listed
      .filter(({ group, isOptional }) => (isOptional ? 'Optional' : group) === name)
      .map(({ title, route, lead }) => `- [${title}](${base}${route}.md): ${lead}`),
    '',
  ]);
  const [first] = pages;
  writeFileSync(
    join(built, 'llms.txt'),
    [`# Millrace`, '', `> ${first.lead}`, '', ...list].join('\n'),
  );
  for (const { route, text } of pages) {
    mkdirSync(dirname(join(built, route)), { recursive: true });
    writeFileSync(join(built, `${route}.md`), absolute(text));
  }
  const full = required.map(
    ({ source, text }) => `<!-- ${source} -->\n\n${absolute(text).trim()}\n`,
  );
  writeFileSync(join(built, 'llms-full.txt'), full.join('\n'));
}

function isLinked(base) {
  const { found, pages, links } = brokenLinks(built, base);
  for (const line of found) say(line);
  say(`${links} links on ${pages} pages, ${found.length} of them broken.`);
  return found.length === 0;
}

function readArguments() {
  const options = {
    base: { type: 'string', default: '/' },
    serve: { type: 'boolean' },
    check: { type: 'boolean' },
    'no-api': { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  };
  try {
    const { values } = parseArgs({ options });
    if (!/^\/([^?#]*\/)?$/.test(values.base))
      return { problem: '--base must begin and end with a slash.' };
    if (values.check && values['no-api'])
      return { problem: '--check needs the API reference: other pages link to it.' };
    return { values };
  } catch (error) {
    return { problem: error.message };
  }
}

const { values, problem } = readArguments();
if (problem !== undefined) {
  console.error(`${problem}\n\n${help}`);
  process.exitCode = 2;
} else if (values.help) {
  console.log(help);
} else {
  process.exitCode = await main(values).catch((error) => {
    say(error.message);
    return 1;
  });
}
