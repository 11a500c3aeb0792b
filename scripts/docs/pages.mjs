import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, root } from '../workspaces.mjs';

/** The order of the guide. A page that does not exist is left out, and a new one of docs/ is added at the end. */
const guide = [
  [
    'Learn',
    [
      'guide',
      'tools',
      'skills',
      'models',
      'own-model',
      'state',
      'memory',
      'retrieval',
      'agents',
      'planning',
      'coming-from',
    ],
  ],
  ['Recipes', ['recipes']],
  [
    'Run in production',
    [
      'production',
      'guards',
      'durability',
      'threat-model',
      'beyond-one-machine',
      'clients',
      'platforms',
      'flow-control',
      'reactive',
    ],
  ],
  ['Go further', ['extending', 'text-tools', 'performance', 'find', 'reference', 'rules']],
];

/** Pages on how Millrace is made, at the end of the guide. Files for language models have them as optional. */
const project = ['docs/DECISIONS', 'ARCHITECTURE', 'CONTRIBUTING', 'SECURITY', 'CHANGELOG'];
const projectGroup = 'The project';

/** Words of file names that are written in capitals. */
const acronyms = new Set(['a2a', 'mcp', 'rag', 'sql', 'ui']);

const read = (...path) => readFileSync(join(root, ...path), 'utf8');

const plain = (markdown) =>
  markdown
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();

const titleOf = (text) => plain(/^# (.*)$/m.exec(text)?.[1] ?? '');

/** The first sentence of the first paragraph. */
export const leadOf = (text) => {
  const paragraphs = text.replaceAll(/^(`{3,})[^]*?^\1$/gm, '').split(/\n{2,}/);
  const first = plain(paragraphs.find((it) => /^[A-Za-z`*[@]/.test(it)) ?? '');
  return /^.*?[.:](?= |$)/.exec(first)?.[0].replace(/:$/, '.') ?? first;
};

const markdownPage = (source, route, section, group) => {
  const text = read(source);
  return { source, route, section, group, text, title: titleOf(text), lead: leadOf(text) };
};

const namesIn = (folder, pattern) =>
  readdirSync(join(root, folder))
    .flatMap((name) => pattern.exec(name)?.[1] ?? [])
    .sort();

function guidePages() {
  const present = namesIn('docs', /^(.*)\.md$/);
  const listed = guide.flatMap(([, names]) => names);
  const others = present.filter(
    (name) => !listed.includes(name) && !project.includes(`docs/${name}`),
  );
  return [...guide, ['More', others]].flatMap(([group, names]) =>
    names
      .filter((name) => present.includes(name))
      .map((name) => {
        const route = name === 'guide' ? 'guide/index' : `guide/${name.toLowerCase()}`;
        return markdownPage(`docs/${name}.md`, route, 'guide', group);
      }),
  );
}

const start = () => ({
  ...markdownPage('README.md', 'start', 'guide', 'Learn'),
  // Its title is the name of the project.
  title: 'Start',
});

const packagePages = () =>
  readdirSync(join(root, 'packages'))
    .filter((name) => existsSync(join(root, 'packages', name, 'README.md')))
    .map((name) => {
      const page = markdownPage(
        `packages/${name}/README.md`,
        `packages/${name}`,
        'packages',
        'Packages',
      );
      return { ...page, lead: readJson(root, 'packages', name, 'package.json').description };
    });

const fence = (language, text) => `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``;

function examplePage(name) {
  const source = `examples/${name}.ts`;
  const [, lead, code] = /^\/\/ (.*)\n([^]*)$/.exec(read(source));
  const [, number, words] = /^(\d+)-(.*)$/.exec(name);
  const title = words
    .split('-')
    .map((word, index) =>
      acronyms.has(word)
        ? word.toUpperCase()
        : index === 0
          ? word.replace(/^./, (it) => it.toUpperCase())
          : word,
    )
    .join(' ');
  const output = `examples/expected/${name}.txt`;
  const printed = existsSync(join(root, output))
    ? `Run it with \`npm run build && node examples/dist/${name}.js\`. It prints:\n\n${fence('text', read(output))}\n`
    : '';
  const text = `# ${title}\n\n${lead}\n\n${fence('ts', code)}\n\n${printed}`;
  const label = `${Number(number)}. ${title}`;
  return {
    source,
    route: `examples/${name}`,
    section: 'examples',
    group: 'Examples',
    text,
    title: label,
    lead,
  };
}

const examplePages = () => [
  ...namesIn('examples', /^(\d\d-.*)\.ts$/).map(examplePage),
  markdownPage('examples/react/README.md', 'examples/react', 'examples', 'Examples'),
];

const projectPages = () =>
  project
    .filter((name) => existsSync(join(root, `${name}.md`)))
    .map((name) => {
      const route = name.toLowerCase().replace('docs/', 'guide/');
      return { ...markdownPage(`${name}.md`, route, 'guide', projectGroup), isOptional: true };
    });

const row = ({ route, title, lead }) =>
  `| [${title}](/${route}.md) | ${lead.replaceAll('|', '\\|')} |`;

const indexPage = (section, title, intro, pages) => ({
  source: section,
  route: `${section}/index`,
  section,
  group: title,
  title,
  lead: intro,
  text: `# ${title}\n\n${intro}\n\n| ${title.replace(/s$/, '')} | Description |\n| --- | --- |\n${pages.map(row).join('\n')}\n`,
  isIndex: true,
});

/** Every page of the site but the home page and the API reference, in the order of reading. */
export function sitePages() {
  const packages = packagePages();
  const examples = examplePages();
  return [
    start(),
    ...guidePages(),
    ...projectPages(),
    indexPage(
      'packages',
      'Packages',
      'What each package adds. Install the ones you need; all build on `millrace`.',
      packages,
    ),
    ...packages,
    indexPage(
      'examples',
      'Examples',
      'Programs that run as they are, each under 40 lines, with what they print.',
      examples,
    ),
    ...examples,
  ];
}

/** The text of a page as the site shows it: a graph of Mermaid becomes a table. */
export const shown = (text) =>
  text.replaceAll(/^```mermaid\n([^]*?)^```$/gm, (_, graph) => {
    const arrows = [...graph.matchAll(/\[([^\]]+)\] --> [\w.-]+\[([^\]]+)\]/g)];
    const rows = [...grouped(arrows, ([, from]) => from)].map(
      ([from, to]) => `| \`${from}\` | ${to.map(([, , it]) => `\`${it}\``).join(', ')} |`,
    );
    return ['| From | To |', '| --- | --- |', ...rows].join('\n');
  });

/** `Map.groupBy`, which Node 20 does not have. */
function grouped(values, keyOf) {
  const groups = new Map();
  for (const value of values)
    groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value]);
  return groups;
}

const linkTo = ({ route }) => `/${route.replace(/(^|\/)index$/, '$1')}`;

/** The sidebars, by the path that they belong to. The one of the guide belongs to all other pages. */
export function sidebars(pages) {
  const groupsOf = (section) =>
    [
      ...grouped(
        pages.filter((page) => page.section === section),
        ({ group }) => group,
      ),
    ].map(([text, members]) => ({
      text,
      items: members.map((page) => ({
        text: page.isIndex ? 'Overview' : page.title,
        link: linkTo(page),
      })),
    }));
  const api = [...grouped(entries(), ({ folder }) => folder)].map(([, members]) => {
    const [main, ...others] = members.map(({ name, route }) => ({
      text: name,
      link: `/api/${route}/`,
    }));
    return others.length === 0
      ? main
      : {
          ...main,
          collapsed: true,
          items: others.map((it) => ({ ...it, text: it.text.slice(main.text.length + 1) })),
        };
  });
  return {
    '/packages/': groupsOf('packages'),
    '/examples/': groupsOf('examples'),
    '/api/': [{ text: 'API reference', items: [{ text: 'Overview', link: '/api/' }, ...api] }],
    '/': groupsOf('guide'),
  };
}

/** Every public entry of every package: its name, its source, and the folder of its pages below /api/. */
export const entries = () =>
  readdirSync(join(root, 'packages')).flatMap((folder) => {
    const { name, exports = {} } = readJson(root, 'packages', folder, 'package.json');
    return Object.entries(exports)
      .filter(([, { types }]) => types !== undefined)
      .map(([path, { types }]) => ({
        name: name + path.slice(1),
        folder,
        route: folder + path.slice(1),
        source: join('packages', folder, types.replace('./dist/', 'src/')).replace(
          /\.d\.ts$/,
          '.ts',
        ),
      }));
  });
