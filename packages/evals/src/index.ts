// Evaluate: call an agent with cases, and score the replies.
export {
  type EvalCase,
  type EvalTarget,
  evaluate,
  type EvaluateOptions,
  type Scorers,
  summary,
} from './evaluate.js';
export {
  type CaseResult,
  type EvalEvent,
  type EvalSummary,
  type EvalTotals,
  type ScoreStatistics,
  summarize,
  type TrialResult,
} from './results.js';

// Scorers: functions of the reply, the trajectory, or a judge.
export { type CalledToolsOptions, calledTools, type ExpectedCall } from './called-tools.js';
export { judge, type JudgeOptions } from './judge.js';
export type { EvalTrial, GivenScore, Score, Scorer, ScorerContext, ScoreResult } from './score.js';
export { exactAnswer, includesText, type IncludesTextOptions } from './scorers.js';

// Results: a table, and a baseline to compare with.
export {
  baselineOf,
  compareToBaseline,
  type EvalChange,
  type EvalComparison,
  type Tolerances,
} from './baseline.js';
export { describeChanges, evalTable, type EvalTableOptions } from './table.js';
