/** The source of the model of a project. */
export type Provider = 'demo' | 'openai' | 'anthropic' | 'ollama';

interface ProviderInfo {
  /** For the menu and the README. */
  readonly about: string;
  readonly entry: string;
  readonly factory: string;
  readonly model: string;
  /** Commands to run once before the first start. */
  readonly setUp: readonly string[];
}

export const providers: Readonly<Record<Provider, ProviderInfo>> = {
  demo: {
    about: 'demo model: a set of rules, without a key or a network',
    entry: '@millrace/demo-model',
    factory: 'demoModel',
    model: 'demoModel()',
    setUp: [],
  },
  openai: {
    about: 'OpenAI, with OPENAI_API_KEY',
    entry: '@millrace/openai',
    factory: 'openai',
    model: "openai('gpt-5-mini')",
    setUp: ['export OPENAI_API_KEY=…'],
  },
  anthropic: {
    about: 'Anthropic, with ANTHROPIC_API_KEY',
    entry: '@millrace/anthropic',
    factory: 'anthropic',
    model: "anthropic('claude-sonnet-4-5')",
    setUp: ['export ANTHROPIC_API_KEY=…'],
  },
  ollama: {
    about: 'Ollama, on this machine',
    entry: '@millrace/openai',
    factory: 'ollama',
    model: "ollama('qwen3:8b')",
    setUp: ['ollama pull qwen3:8b'],
  },
};

export interface Project {
  readonly name: string;
  readonly provider: Provider;
  /** The range of the packages of Millrace. */
  readonly range: string;
  /** Tarballs that replace packages, by name. */
  readonly tarballs: Readonly<Record<string, string>>;
}

/** Renders the files of a project, by path. */
export const filesOf = (project: Project): Readonly<Record<string, string>> => ({
  'package.json': `${JSON.stringify(manifestOf(project), null, 2)}\n`,
  'tsconfig.json': `${JSON.stringify(compilation, null, 2)}\n`,
  '.gitignore': 'node_modules/\ndist/\n.env\n',
  'README.md': readmeOf(project),
  'src/agent.ts': agent,
  'src/agent.test.ts': agentTest,
  'src/main.ts': mainOf(project),
});

const manifestOf = ({ name, provider, range, tarballs }: Project): object => ({
  name,
  private: true,
  type: 'module',
  scripts: {
    start: 'node --import tsx src/main.ts',
    test: 'node --import tsx --test src/*.test.ts',
    check: 'tsc',
  },
  engines: { node: '>=20.19' },
  dependencies: {
    ...Object.fromEntries(
      [providers[provider].entry, 'millrace'].map((each) => [each, tarballs[each] ?? range]),
    ),
    rxjs: '^7.8.1',
    zod: '^4.2.0',
  },
  devDependencies: { '@types/node': '^20.19.0', tsx: '^4.20.0', typescript: '^6.0.0' },
  ...(Object.keys(tarballs).length > 0 && { overrides: tarballs }),
});

const compilation = {
  compilerOptions: {
    target: 'es2022',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noUncheckedIndexedAccess: true,
    verbatimModuleSyntax: true,
    skipLibCheck: true,
    noEmit: true,
  },
  include: ['src'],
};

const agent = `import { createAgent, type Model, tool } from 'millrace';
import { z } from 'zod';

/** The schema describes the arguments for the model, validates them, and types them for \`run\`. */
export const weather = tool({
  name: 'weather',
  description: 'Returns the weather of a city today.',
  input: z.object({
    city: z.string().describe('Name of a city').meta({ examples: ['Oslo'] }),
  }),
  run: ({ city }) => \`Snow in \${city}, -3 °C.\`, // replace this with a call of your API
});

/** The program and the tests create it with different models. */
export const createWeatherAgent = (model: Model) =>
  createAgent({
    name: 'weather',
    model,
    instructions: 'Answer in one sentence.',
    tools: [weather],
  });
`;

const mainOf = ({ provider }: Project): string => {
  const { entry, factory, model } = providers[provider];
  return `import { isMillraceError, text } from 'millrace';
import { ${factory} } from '${entry}';
import { createWeatherAgent } from './agent.js';

const question = process.argv.slice(2).join(' ') || 'What is the weather in Oslo?';

try {
  const agent = createWeatherAgent(${model});
  // Prints each part of the answer when it arrives.
  await agent
    .stream$(question)
    .pipe(text())
    .forEach((delta) => process.stdout.write(delta));
  console.log();
} catch (error) {
  if (!isMillraceError(error)) throw error;
  console.error(\`\${error.code}: \${error.message}\`);
  process.exitCode = 1;
}
`;
};

const agentTest = `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { marbles, scriptedModel, text, toolCall } from 'millrace/testing';
import { map } from 'rxjs';
import { createWeatherAgent } from './agent.js';

test('calls the tool with the arguments of the model', async () => {
  const model = scriptedModel([toolCall('weather', { city: 'Oslo' })], [text('It snows.')]);
  const reply = await createWeatherAgent(model).call('What is the weather in Oslo?');
  assert.equal(reply.toolCalls[0]?.output, 'Snow in Oslo, -3 °C.');
  assert.equal(reply.text, 'It snows.');
});

// A marble diagram: each character is a millisecond of virtual time, "t" is a part of the text, "f" its end.
test('replies when the model has finished, and subscribes to it once', () => {
  marbles(({ model, expectObservable, expectSubscriptions, scheduler }) => {
    const slow = model('--t--t--(f|)', { t: text('Snow. ') });
    const answer$ = createWeatherAgent(slow)
      .call$('What is the weather in Oslo?', { scheduler })
      .pipe(map((reply) => reply.text));
    expectObservable(answer$).toBe('--------(a|)', { a: 'Snow. Snow. ' });
    for (const log of slow.subscriptions) expectSubscriptions(log).toBe('^-------!');
  });
});
`;

const readmeOf = ({ name, provider, tarballs }: Project): string => {
  const { about, setUp } = providers[provider];
  return `# ${name}

An agent with one tool, built with [Millrace](https://www.npmjs.com/package/millrace). Its model: ${about}.

\`\`\`sh
${['npm install', ...setUp, 'npm start', 'npm start -- "What is the weather in Bergen?"', 'npm test', 'npm run check'].join('\n')}
\`\`\`

\`npm test\` needs no model and no network: the model of the tests is a script. \`npm run check\` checks the types.

- \`src/agent.ts\`: the agent and its tool. Describe your own tool with a schema, and return a string, an object or an Observable.
- \`src/main.ts\`: the program. Choose the model here: each vendor is a package of its own, such as \`@millrace/openai\`.
- \`src/agent.test.ts\`: a test of the tool, and one in virtual time.

${Object.keys(tarballs).length > 0 ? fromTarballs : ''}Next: keep a conversation with \`sessions(agent).open('ada')\` of \`millrace/sessions\`, persist it with \`openFiles('.data')\` of
\`@millrace/store\`, and ask a person before a tool runs with \`requireApproval(weather, …)\` of \`millrace\`.
`;
};

const fromTarballs = `The packages of Millrace come from tarballs: to add one, copy its line from \`overrides\` in package.json to \`dependencies\`.

`;
