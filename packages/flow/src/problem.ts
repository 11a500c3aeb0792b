import { MillraceError } from 'millrace';

/** A problem in a document. */
export interface FlowProblem {
  /** The path of the value: `components.router.params.cases.0.to.0`; `''` for the whole document. */
  readonly path: string;
  /** The predicate of a sentence whose subject is the path. */
  readonly problem: string;
  /** A sentence that suggests a fix. */
  readonly suggestion?: string;
}

/** A problem with a lazy suggestion: a document may have many problems, and not all are reported. */
export interface Finding {
  readonly path: readonly (string | number)[];
  readonly problem: string;
  readonly suggestion?: string | (() => string);
}

export const problemAt = (
  path: readonly (string | number)[],
  problem: string,
  suggestion?: string | (() => string),
): Finding => ({ path, problem, ...(suggestion !== undefined && { suggestion }) });

/** The maximum number of reported problems. */
const maxProblems = 100;

/** Formats up to 100 findings, and counts the rest. */
export const toFlowProblems = (findings: readonly Finding[]): readonly FlowProblem[] => {
  const problems = findings.slice(0, maxProblems).map(({ path, problem, suggestion }) => ({
    path: path.map((key) => truncate(String(key))).join('.'),
    problem,
    ...(suggestion !== undefined && {
      suggestion: typeof suggestion === 'string' ? suggestion : suggestion(),
    }),
  }));
  const more = findings.length - problems.length;
  return more > 0 ? [...problems, { path: '', problem: `has ${more} more problems` }] : problems;
};

export const truncate = (text: string, maxLength = 80): string =>
  text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;

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
