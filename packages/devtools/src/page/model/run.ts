// All that the page derives from the log of a root call.
import { type Axis, axisOf } from './axis.js';
import { type Conversation, createConversation } from './conversation.js';
import { createLanes, type Lanes } from './lanes.js';
import { createLog, type Log } from './log.js';
import { createRequests, type Requests } from './requests.js';

export interface Run {
  readonly log: Log;
  readonly lanes: Lanes;
  readonly conversation: Conversation;
  /** The requests to models, with their answers. */
  readonly requests: Requests;
}

export const createRun = (): Run => {
  const lanes = createLanes();
  const conversation = createConversation();
  const requests = createRequests();
  return { log: createLog([lanes, conversation, requests]), lanes, conversation, requests };
};

/** The positions at which the turns of the root call begin. */
export const turnStarts = ({ lanes }: Run): readonly number[] =>
  lanes.root?.turns.map(({ position }) => position) ?? [];

/** The next turn after a position, or the last before it; without one, the ends of the log. */
export const turnFrom = (run: Run, position: number, direction: -1 | 1): number => {
  const starts = turnStarts(run).map((start) => start + 1);
  return direction === 1
    ? (starts.find((start) => start > position) ?? run.log.size)
    : (starts.findLast((start) => start < position) ?? 0);
};

export const runAxis = ({ log }: Run, isCompressed: boolean, offset = 0): Axis =>
  axisOf(log, isCompressed, offset);
