import { textOf, type Tool, type ToolContext, type ToolOutput, type Validation } from 'millrace';
import { lentToolContext } from 'millrace/testing';
import { lastValueFrom, toArray } from 'rxjs';

/** What came of one run. */
export interface Ran {
  readonly text: string;
  readonly output: ToolOutput;
  readonly progress: readonly unknown[];
}

/** What a tool says of an input. */
export const verdictOn = (tool: Tool, input: unknown): Promise<Validation> =>
  lastValueFrom(tool.validation$(input));

/** Validates an input and runs a tool on it; rejects where either fails. */
export const runTool = async (
  tool: Tool,
  input: unknown,
  lent: Partial<ToolContext> = {},
): Promise<Ran> => {
  const verdict = await verdictOn(tool, input);
  if (!verdict.valid) throw new Error(verdict.problems.join('\n'));
  const emissions = await lastValueFrom(
    tool.run$(verdict.value, lentToolContext(lent)).pipe(toArray()),
  );
  const last = emissions.at(-1);
  if (last?.type !== 'output') throw new Error('There was no output.');
  const progress = emissions.flatMap((it) => (it.type === 'progress' ? [it.value] : []));
  return { text: textOf(last.output), output: last.output, progress };
};
