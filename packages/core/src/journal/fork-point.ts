import { MillraceError } from '../errors.js';
import { callStep, type ForkPoint } from './call-record.js';
import { withoutLateSignals } from './fork-outside.js';
import { nearestSteps } from './nearest-steps.js';
import { intentOf, type StoredStep, type StoredSteps, toolStepOf } from './stored-steps.js';

/**
 * The steps that stand before a point, in the order of the loop. What is to be decided or run anew is not among them: neither the intent of a tool whose result is behind the
 * point, nor that of the tool in which the point is, nor an interrupt behind them.
 */
export const stepsBefore = (
  callId: string,
  { steps, broken }: StoredSteps,
  at: ForkPoint,
): readonly StoredStep[] => {
  const boundary = boundaryIn(steps, at);
  const point = steps[boundary];
  if (point === undefined) throw broken ?? noSuchPoint(callId, steps, at);
  if (point.id === callStep) throw nothingBefore(callId);
  const all = new Set(steps.map(({ id }) => id));
  const before = steps.slice(0, boundary);
  const kept = new Set(before.map(({ id }) => id));
  return withoutLateSignals(
    before.filter(({ id }) => {
      const toolStep = toolStepOf(id);
      if (toolStep === undefined) return true;
      return toolStep !== point.tool && (kept.has(toolStep) || !all.has(toolStep));
    }),
  );
};

const boundaryIn = (steps: readonly StoredStep[], at: ForkPoint): number => {
  if (typeof at !== 'string') return steps.findIndex(({ iteration }) => iteration === at.iteration);
  // A tool is decided on and run as a whole, with all that is done below it; one that was broken off has come to nothing yet.
  const toolStep = toolStepOf(at) ?? at;
  const isThere = steps.some(({ id }) => id === at || id === intentOf(at));
  const isPoint = ({ id, tool }: StoredStep): boolean => id === at || tool === toolStep;
  return isThere ? steps.findIndex(isPoint) : -1;
};

const noSuchPoint = (
  callId: string,
  steps: readonly StoredStep[],
  at: ForkPoint,
): MillraceError => {
  const [what, wanted] =
    typeof at === 'string'
      ? [`step '${at}'`, at]
      : [`iteration ${at.iteration}`, String(at.iteration)];
  const ids = steps.map(({ id }) => id);
  return new MillraceError(
    'invalidRequest',
    `The call '${callId}' has no ${what}. It can be forked at: ${nearestSteps(wanted, ids)}.`,
  );
};

const nothingBefore = (callId: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `Nothing of the call '${callId}' stands before its first step. To begin anew, make another call; to begin with another input, fork it at its second step, and edit '${callStep}'.`,
  );
