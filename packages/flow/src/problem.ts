import { MillraceError } from '@millrace/core';

/** Something that is wrong with a document. */
export interface FlowProblem {
  /** Where: `components.router.params.cases.0.to.0`; empty where it is the whole. */
  readonly path: string;
  /** What, as the end of a sentence that begins with the path. */
  readonly problem: string;
  /** What to do, in a sentence. */
  readonly suggestion?: string;
}

/** Makes a problem. */
export const problemAt = (
  path: readonly (string | number)[],
  problem: string,
  suggestion?: string,
): FlowProblem => ({
  path: path.map((key) => shortened(String(key))).join('.'),
  problem,
  ...(suggestion !== undefined && { suggestion }),
});

/** What a document says may be long. */
export const shortened = (text: string): string =>
  text.length > mostCharacters ? `${text.slice(0, mostCharacters)}…` : text;

const mostCharacters = 80;

/** Problems that an error lists. */
const mostListed = 50;

/** The `config` error that tells all problems, one line each. */
export const flowError = (problems: readonly FlowProblem[]): MillraceError => {
  const lines = problems.slice(0, mostListed).map(({ path, problem, suggestion }) => {
    const where = path === '' ? 'the document' : path;
    return `- ${where}: ${problem}.${suggestion === undefined ? '' : ` ${suggestion}`}`;
  });
  const more = problems.length - lines.length;
  const rest = more > 0 ? [`- and ${more} more`] : [];
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  return new MillraceError(
    'config',
    [`The flow cannot run, it has ${count}:`, ...lines, ...rest].join('\n'),
  );
};
