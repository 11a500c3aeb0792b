import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { MillraceError } from 'millrace';
import { messageOf } from 'millrace/values';
import { type FlowProblem, problemsIn, toMermaid } from '@millrace/flow';
import { fromRagflow, type Unmapped } from '@millrace/flow/ragflow';
import type { FlowArguments } from '../command-line/arguments.js';
import { isHumanOutput } from '../presentation/presenter.js';
import { printable, printableJson } from '../presentation/printable.js';
import { wrapFor } from '../presentation/wrap.js';
import type { Setting } from '../setting.js';
import { runFlow } from './run-flow.js';

/** Runs, checks or draws a flow. Resolves to the exit code. */
export const flow = async (setting: Setting<FlowArguments>): Promise<number> => {
  const { given, output } = setting;
  const read = await readFlow(setting);
  if (given.action === 'check') return check(setting, read);
  if (read.document === undefined) throw noFlow(given, read.unmapped);
  if (given.action === 'run' || given.live) {
    noteUnmapped(setting, read.unmapped);
    return runFlow(setting, read.document);
  }
  output.stream.write(toMermaid(read.document));
  return 0;
};

interface ReadFlow {
  /** `undefined` if a canvas has no counterpart. */
  readonly document: unknown;
  readonly unmapped: readonly Unmapped[];
}

const readFlow = async ({ given, environment }: Setting<FlowArguments>): Promise<ReadFlow> => {
  const text = await readText(resolve(environment.directory, given.file), given.file);
  const value = parse(text, given.file);
  if (given.from === 'ragflow') return fromRagflow(value);
  if (isCanvas(value)) {
    throw new MillraceError(
      'config',
      `'${given.file}' is not a flow of Millrace, but a canvas of RAGFlow. Add --from ragflow.`,
    );
  }
  return { document: value, unmapped: [] };
};

const readText = async (path: string, shown: string): Promise<string> => {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const isMissing = Reflect.get(Object(cause), 'code') === 'ENOENT';
    const problem = isMissing
      ? `There is no file '${shown}'.`
      : `The file '${shown}' cannot be read.`;
    throw new MillraceError('config', problem, { cause });
  }
};

const parse = (text: string, shown: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const why = messageOf(cause);
    throw new MillraceError('config', `The file '${shown}' is not valid JSON: ${why}.`, { cause });
  }
};

const isCanvas = (value: unknown): boolean => fromRagflow(value).document !== undefined;

const noFlow = ({ file }: FlowArguments, unmapped: readonly Unmapped[]): MillraceError =>
  new MillraceError('config', `'${file}' cannot be read as a flow. ${unmapped[0]?.reason ?? ''}`);

// ---------------------------------------------------------------- check

const check = (
  { given, output, theme }: Setting<FlowArguments>,
  { document, unmapped }: ReadFlow,
): number => {
  const problems = document === undefined ? [] : problemsIn(document);
  const isFine = document !== undefined && problems.length === 0;
  if (given.json) {
    const shown = given.from === 'ragflow' ? { document, problems, unmapped } : { problems };
    output.stream.write(`${printableJson(JSON.stringify(shown, undefined, 2))}\n`);
    return isFine ? 0 : 1;
  }
  const { colors } = theme;
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  const verdict = document === undefined ? 'not a flow' : count;
  const lines = [
    `${printable(given.file)}: ${isFine ? colors.green('no problems') : colors.red(verdict)}`,
    ...problems.flatMap((problem) => problemLines(problem)).map(printable),
    ...(unmapped.length === 0 ? [] : ['', colors.bold('Not mapped:')]),
    ...unmapped.map((it) => printable(`  ${unmappedLine(it)}`)),
  ];
  output.stream.write(`${wrapFor(lines.join('\n'), theme)}\n`);
  return isFine ? 0 : 1;
};

const problemLines = ({ path, problem, suggestion }: FlowProblem): readonly string[] => [
  `  ${path === '' ? 'the document' : path}: ${problem}.`,
  ...(suggestion === undefined ? [] : [`    ${suggestion}`]),
];

const unmappedLine = ({ component, param, reason }: Unmapped): string => {
  const where = [component, param].filter((part) => part !== undefined && part !== '').join(', ');
  return where === '' ? reason : `${where}: ${reason}`;
};

const noteUnmapped = (
  { given, environment, errorTheme }: Setting<FlowArguments>,
  unmapped: readonly Unmapped[],
): void => {
  if (unmapped.length === 0 || !isHumanOutput(given)) return;
  const note = `${unmapped.length} parts of the canvas are not mapped: npx @millrace/cli flow check ${given.file} --from ragflow`;
  environment.stderr.write(`${wrapFor(errorTheme.colors.dim(note), errorTheme)}\n`);
};
