// Every output of the command in a terminal of 40 or 80 columns, with characters that take two.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { MillraceError } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { commandNames } from './command-line/help.js';
import { columnsOf, isWide, piecesOf } from './presentation/columns.js';
import { concluding, type Home, makeHome } from './runs/runs.test-support.js';
import { fakeOutput } from './terminal/fake-terminal.test-support.js';

// The first command loads all that there is.
jest.setTimeout(240_000);

const sentence =
  '東京は今何時ですか。それから大阪はどうですか。 😀 The ferry to Flåm leaves at ten, and 👩‍👩‍👧 may come along if they like. ';

const home: { made?: Home; id: string } = { id: '' };

beforeAll(async () => {
  const made = makeHome();
  home.made = made;
  const model = scriptedModel(
    [text(sentence), toolCall('calculator', { expression: '6 * 7' })],
    [text(sentence), toolCall('calculator', { expression: 'x' })],
    concluding,
  );
  await made.ran(['--session', 'trip', sentence], model);
  await made.ran([sentence], failing());
  home.id = (await made.ids()).at(-1) ?? '';
  await writeFile(join(made.path, 'bad.json'), '{"components":[{"id":"x","type":"nothing"}]}');
});

afterAll(() => home.made?.remove());

const failing = () =>
  scriptedModel(() => {
    throw new MillraceError('connection', `${sentence} connect ECONNREFUSED`);
  });

/** The lines that a terminal of a width shows. */
const linesAt = async (width: number, argv: readonly string[], isFailing = false) => {
  const [stdout, stderr] = [fakeOutput(), fakeOutput()];
  const terminal = { isTTY: true, columns: width };
  const model = isFailing ? failing() : scriptedModel([text(sentence.repeat(3))]);
  await home.made?.ran(
    argv.map((word) => word.replace('ID', home.id).replace('HOME', home.made?.path ?? '')),
    model,
    {
      stdout: Object.assign(stdout.stream, terminal),
      stderr: Object.assign(stderr.stream, terminal),
    },
  );
  return `${stdout.text()}\n${stderr.text()}`
    .replaceAll(/\u001b\[[\d;?]*[A-Za-z]/gu, '') // eslint-disable-line no-control-regex
    .split('\n')
    .map((line) => line.trimEnd());
};

/** A command to copy, an example, a word or a path that is wider than the terminal stays whole. Words end before wide characters. */
const mayBeWide = (line: string): boolean =>
  /^ *(?:Usage: |\$ |npx @millrace\/cli |-d |\{)/u.test(line) ||
  !(/\S\s+\S/u.test(line) || piecesOf(line).some(isWide));

const outputs: readonly (readonly [argv: readonly string[], isFailing?: boolean])[] = [
  ...commandNames.filter((name) => name !== 'init').map((name) => [[name, '--help']] as const),
  ...['run', 'check', 'picture'].map((action) => [['flow', action, '--help']] as const),
  [['--help']],
  [['--jsn']],
  [['rusn']],
  [['flow', 'rnu']],
  [['runs', '--lmit', '3', '日本']],
  [['runs', '--store', '']],
  [['fork', 'ID']],
  [['flow', 'run', 'HOME/bad.json', '--from', 'ragflw']],
  [[sentence]],
  [[sentence], true],
  [['-q', sentence]],
  [['runs']],
  [['runs', 'ID']],
  [['runs', 'nothing-like-it']],
  [['replay', 'ID', '--speed', 'max']],
  [['resume', 'ID']],
  [['fork', 'ID', '--at', '9']],
  [['fork', 'ID', '--question', sentence]],
  [['flow', 'check', 'HOME/bad.json']],
  [['flow', 'run', 'HOME/none.json']],
  [['eval', 'HOME/none.mjs']],
];

describe.each([40, 80])('in %i columns', (width) => {
  it.each(outputs.map(([argv, isFailing = false]) => ({ argv, isFailing })))(
    'no line of $argv is wider, with an error: $isFailing',
    async ({ argv, isFailing }) => {
      const lines = await linesAt(width, argv, isFailing);
      expect(lines.some((line) => line.trim() !== '')).toBe(true);
      // Colours come whole, or not at all.
      expect(lines.join()).not.toMatch(/\[\d+m/u);
      const tooWide = lines.filter((line) => columnsOf(line) > width && !mayBeWide(line));
      expect(tooWide).toEqual([]);
    },
  );

  it('keeps commands to copy in usage errors whole', async () => {
    const all = 'npx @millrace/cli --help)';
    expect(await linesAt(width, ['--jsn'])).toContainEqual(expect.stringContaining(all));
    const ofStep = expect.stringContaining('npx @millrace/cli runs <id>)');
    expect(await linesAt(width, ['fork', 'ID'])).toContainEqual(ofStep);
    const toAsk = expect.stringContaining('npx @millrace/cli ask rusn)');
    expect(await linesAt(width, ['rusn'])).toContainEqual(toAsk);
  });
});
