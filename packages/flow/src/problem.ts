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

/** A problem whose suggestion is looked for when it is told: a document may have many, and not all are. */
export interface Finding {
  readonly path: readonly (string | number)[];
  readonly problem: string;
  readonly suggestion?: string | (() => string);
}

/** Makes a finding. */
export const problemAt = (
  path: readonly (string | number)[],
  problem: string,
  suggestion?: string | (() => string),
): Finding => ({ path, problem, ...(suggestion !== undefined && { suggestion }) });

/** Problems that are told of one document. */
const mostTold = 100;

/** Tells what has been found: of very many, the first ones. */
export const told = (findings: readonly Finding[]): readonly FlowProblem[] => {
  const problems = findings.slice(0, mostTold).map(({ path, problem, suggestion }) => ({
    path: path.map((key) => shortened(String(key))).join('.'),
    problem,
    ...(suggestion !== undefined && {
      suggestion: typeof suggestion === 'string' ? suggestion : suggestion(),
    }),
  }));
  const more = findings.length - problems.length;
  return more > 0 ? [...problems, { path: '', problem: `has ${more} more problems` }] : problems;
};

/** What a document says may be long. */
export const shortened = (text: string): string =>
  text.length > mostCharacters ? `${text.slice(0, mostCharacters)}…` : text;

const mostCharacters = 80;

/** The `config` error that tells all problems, one line each. */
export const flowError = (problems: readonly FlowProblem[]): MillraceError => {
  const lines = problems.map(({ path, problem, suggestion }) => {
    const where = path === '' ? 'the document' : path;
    return `- ${where}: ${problem}.${suggestion === undefined ? '' : ` ${suggestion}`}`;
  });
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  return new MillraceError(
    'config',
    [`The flow cannot run, it has ${count}:`, ...lines].join('\n'),
  );
};
