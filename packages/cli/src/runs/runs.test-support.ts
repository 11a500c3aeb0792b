import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Model, type ModelRequest, textOf } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import type { ModelChoice } from '../choose-model.js';
import type { Environment } from '../environment.js';
import { main } from '../main.js';
import { fakeEnvironment } from '../terminal/fake-terminal.test-support.js';

/** What a command wrote, and its exit code. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A home directory of a test, and the command in it. */
export interface Home {
  readonly path: string;
  /** Runs the command with a model that is scripted; default: one that says hello. */
  readonly ran: (
    argv: readonly string[],
    model?: Model,
    changes?: Partial<Environment>,
  ) => Promise<Ran>;
  /** The ids of the runs, the newest first. */
  readonly ids: () => Promise<readonly string[]>;
  readonly remove: () => Promise<void>;
}

/** Makes a home directory. */
export const makeHome = (): Home => {
  const path = mkdtempSync(join(tmpdir(), 'millrace-home-'));
  const ran: Home['ran'] = async (argv, model = scriptedModel([text('Hello.')]), changes = {}) => {
    const { environment, out, err } = fakeEnvironment(argv, {
      models: [choiceOf(model)],
      ...changes,
      env: { HOME: path, ...changes.env },
    });
    const code = await main(environment);
    return { code, out: out.text(), err: err.text() };
  };
  return {
    path,
    ran,
    ids: async () => (await ran(['runs', '--all', '-q'])).out.split('\n').filter(Boolean),
    remove: () => rm(path, { recursive: true, force: true }),
  };
};

const choiceOf = (model: Model): ModelChoice => ({
  variables: [],
  factory: () => Promise.resolve({ model, about: 'a scripted model', unit: 'tokens' }),
});

/** Repeats the result of the tool. */
export const concluding = ({ messages }: ModelRequest) => {
  const results = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
  return [text(`So: ${results.map((result) => textOf(result)).join('')}`)];
};

/** Asks for one calculation, and answers with the result. */
export const calculating = () =>
  scriptedModel([toolCall('calculator', { expression: '6 * 7' })], concluding);

/** How many messages there are, and the last of them. */
export const echoed = ({ messages }: ModelRequest) => [
  text(`${messages.length}: ${messages.slice(-1).map(textOf).join('')}`),
];
