import { textOf, type Tool, type ToolContext, type ToolOutput } from 'millrace';
import { lentToolContext } from 'millrace/testing';
import { lastValueFrom, toArray } from 'rxjs';

/** The result of one run. */
interface Ran {
  readonly text: string;
  readonly output: ToolOutput;
  readonly progress: readonly unknown[];
}

/** Validates an input and runs a tool on it; rejects where either fails. */
export const runTool = async (
  tool: Tool,
  input: unknown,
  lent: Partial<ToolContext> = {},
): Promise<Ran> => {
  const verdict = await lastValueFrom(tool.validation$(input));
  if (!verdict.valid) throw new Error(verdict.problems.join('\n'));
  const emissions = await lastValueFrom(
    tool.run$(verdict.value, lentToolContext(lent)).pipe(toArray()),
  );
  const last = emissions.at(-1);
  if (last?.type !== 'output') throw new Error('There was no output.');
  const progress = emissions.flatMap((it) => (it.type === 'progress' ? [it.value] : []));
  return { text: textOf(last.output), output: last.output, progress };
};
