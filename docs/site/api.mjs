// Writes the API reference as Markdown pages: `node docs/site/api.mjs <folder>`. scripts/docs.mjs runs it.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';
import { Application, LogLevel, ReflectionKind } from 'typedoc';
import { repository } from '../../scripts/docs/links.mjs';
import { entries as publicEntries } from '../../scripts/docs/pages.mjs';
import { root } from '../../scripts/workspaces.mjs';

const out = process.argv[2];
const temp = join(import.meta.dirname, '.vitepress/temp');
const entries = publicEntries();

/** The module of an entry for types that it uses but does not export. They have pages because options are among them. */
const unexported = 'not-exported';

const types = ReflectionKind.Interface | ReflectionKind.TypeAlias;

/** One program of all packages: it reads their sources, so links lead from one package to another. */
function writeConfig() {
  const compilerOptions = {
    composite: false,
    noEmit: true,
    rootDir: root,
    lib: ['es2023', 'dom', 'dom.iterable'],
    jsx: 'react-jsx',
    jsxImportSource: 'preact',
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
    paths: Object.fromEntries(entries.map(({ name, source }) => [name, [join(root, source)]])),
  };
  const packages = join(root, 'packages/*/src/**');
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions,
    // Sources that no entry imports may declare events, too.
    include: [`${packages}/*.ts`],
    exclude: [`${packages}/*.test*.ts`],
    references: [],
  };
  const file = join(temp, 'tsconfig.json');
  mkdirSync(temp, { recursive: true });
  writeFileSync(file, JSON.stringify(config));
  return file;
}

/** The titles of the pages of modules, by the names of these. */
const titles = new Map([
  ...entries.map(({ name, route }) => [route, name]),
  [unexported, 'Types that are not exported'],
]);

const options = () => ({
  entryPoints: entries.map(({ source }) => join(root, source)),
  tsconfig: writeConfig(),
  plugin: ['typedoc-plugin-missing-exports', 'typedoc-plugin-markdown'],
  // `npm run build` has checked the sources.
  skipErrorChecking: true,
  basePath: root,
  displayBasePath: root,
  disableGit: true,
  sourceLinkTemplate: `${repository}/blob/main/{path}#L{line}`,
  readme: 'none',
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  internalModule: unexported,
  logLevel: LogLevel.Warn,
  validation: { invalidLink: true, invalidPath: true, notExported: false, notDocumented: false },
  groupOrder: [
    'Functions',
    'Classes',
    'Interfaces',
    'Type Aliases',
    'Variables',
    'Properties',
    'Methods',
    '*',
  ],
  sort: ['kind', 'required-first', 'source-order'],
  kindSortOrder: ['Function', 'Class', 'Interface', 'TypeAlias', 'Variable'],
  out,
  // The form of the pages.
  entryFileName: 'index',
  hidePageHeader: true,
  hideBreadcrumbs: true,
  useCodeBlocks: true,
  expandParameters: true,
  indexFormat: 'table',
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  classPropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
  propertyMembersFormat: 'table',
  tableColumnSettings: {
    hideSources: true,
    hideModifiers: true,
    hideInherited: true,
    hideOverrides: true,
  },
  pageTitleTemplates: {
    module: ({ rawName }) => titles.get(rawName) ?? rawName,
  },
});

/** From the module of an entry down to the reflection. */
const pathOf = (reflection) =>
  reflection.parent === undefined ? [] : [...pathOf(reflection.parent), reflection];

const codeBlock = (code) => `\`\`\`ts\n${code}\n\`\`\`\n`;

/** How to import what a page describes. */
function imported(reflection, { name }, isHidden) {
  if (reflection.kindOf(ReflectionKind.Module))
    return isHidden ? `Types that \`${name}\` uses but does not export.\n` : '';
  if (isHidden)
    return `\`${name}\` does not export this type. [Types](/packages/millrace.md#types) shows how to name it.\n`;
  const word = reflection.kindOf(types) ? 'import type' : 'import';
  return codeBlock(`${word} { ${reflection.name} } from '${name}';`);
}

const hiddenTypes = ({ name }) =>
  `## Other types\n\n[Types that \`${name}\` uses but does not export](${unexported}/index.md), such as options.\n`;

const source = /^Defined in: \[(.*?)\]\((.*?)\)$/gm;

const layout =
  /^(# .*\n)\n(```ts\n[^]*?```\n)?\n*(<p class="source">.*\n?)?((?:(?!^#)[^])*)((?:^#[^]*)?)$(?![^])/m;

/** A page begins with what its name is for. Its declaration and how to import it follow, and its source is at the end. */
function inOrder(text, how) {
  const [, title, declaration, place, description, rest] = layout.exec(text);
  // Those of members would be a line each.
  const members = rest.replaceAll(/<p class="source">.*\n+/g, '');
  return [title, `${description.trim()}\n`, how, declaration, `${members.trim()}\n`, place]
    .filter((it) => it !== undefined && it.trim() !== '')
    .join('\n');
}

/** The name without its type parameters, which have a table. */
const titleOf = (reflection) =>
  titles.get(reflection.name) ??
  (reflection.kindOf(ReflectionKind.Function) ? `${reflection.name}()` : reflection.name);

/** The first sentence of a text, up to a full stop that is not within code. */
const firstSentence = (text) => /^(?:[^`.]|`[^`]*`|\.(?! ))*\.(?= )/.exec(text)?.[0] ?? text;

/** The page as the site shows it. */
function arranged(reflection, entry, contents) {
  const matter = `---\nentry: '${entry.name}'\nentryLink: /api/${entry.route}/\npageClass: api\neditLink: false\n---\n\n`;
  const isHidden = pathOf(reflection).some(({ name }) => name === unexported);
  const text = contents
    .replace(/^# .*/, `# ${titleOf(reflection)}`)
    .replace(/^## Modules\n[^]*/m, hiddenTypes(entry))
    .replaceAll(/^(#+ Type|\| Type) Parameter(?=s$| \|)/gm, '$1 parameter')
    .replaceAll(/^(#+ Type) Aliases$/gm, '$1 aliases')
    .replaceAll(/^(#+ Call) Signature$/gm, '$1 signature')
    .replaceAll(/^#+ Inherited from\n\n.*\n/gm, '')
    .replaceAll(
      /^(\| \[[^\]]*\]\([^)]*\) \| )(.*) \|$/gm,
      (_, name, text) => `${name}${firstSentence(text)} |`,
    )
    .replaceAll(/ \| - (?=\|)/g, ' |  ')
    .replaceAll(source, '<p class="source"><a href="$2">$1</a></p>');
  return matter + inOrder(text, imported(reflection, entry, isHidden));
}

const prettier = { parser: 'typescript', printWidth: 72, singleQuote: true };

/** A method is a declaration only within an interface. */
async function formattedMember(code) {
  const text = await format(`interface It {\n${code}}`, prettier);
  return text.replace(/^interface It \{\n([^]*)\}\n$/, '$1').replaceAll(/^ {2}/gm, '');
}

/** Breaks a long declaration into lines. */
const formatted = (code) =>
  format(code, prettier)
    .catch(() => formattedMember(code))
    .catch(() => code);

async function formatDeclarations() {
  const files = readdirSync(out, { recursive: true }).filter((file) => file.endsWith('.md'));
  for (const file of files.map((it) => join(out, it))) {
    const parts = readFileSync(file, 'utf8').split(/(?<=^```ts\n)([^]*?)(?=^```$)/m);
    const written = parts.map((part, index) => (index % 2 === 0 ? part : formatted(part)));
    writeFileSync(file, (await Promise.all(written)).join(''));
  }
}

async function write() {
  const app = await Application.bootstrapWithPlugins(options());
  const project = await app.convert();
  if (project === undefined) return 1;
  const entryAt = ({ sources: [{ fullFileName }] }) =>
    entries.find((entry) => join(root, entry.source) === fullFileName);
  const entryOf = new Map(project.children.map((module) => [module, entryAt(module)]));
  // The addresses of the pages follow the names of the modules.
  for (const [module, { route }] of entryOf) module.name = route;
  for (const { groups = [] } of project.getReflectionsByKind(ReflectionKind.Module))
    for (const { children } of groups) children.sort((a, b) => a.name.localeCompare(b.name, 'en'));

  /** The pages of the types of each entry, for links in code. */
  const pagesOfTypes = Object.fromEntries(entries.map(({ name }) => [name, {}]));
  app.renderer.on('endPage', (page) => {
    const { model, url, contents } = page;
    const entry = entryOf.get(pathOf(model)[0]);
    if (entry === undefined) return;
    page.contents = arranged(model, entry, contents);
    if (model.kindOf(types | ReflectionKind.Class))
      pagesOfTypes[entry.name][model.name] = url.replace(/\.md$/, '.html');
  });
  app.validate(project);
  await app.generateOutputs(project);
  await formatDeclarations();
  writeFileSync(join(temp, 'names.json'), JSON.stringify(pagesOfTypes));
  return app.logger.hasErrors() || app.logger.hasWarnings() ? 1 : 0;
}

process.exitCode = await write();
