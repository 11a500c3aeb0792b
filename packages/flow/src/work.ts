import { type CallOptions, MillraceError, type Reply, textOf } from '@millrace/core';
import { silent } from '@millrace/core/teams';
import type { Observable } from 'rxjs';
import type { Output, Scope } from './scope.js';

/** What came of one run of a component. */
export type Worked =
  | {
      readonly status: 'done';
      readonly output: Output;
      /** Where it leads, where it chooses. */
      readonly to?: readonly string[];
    }
  /** The flow ends here, with this reply: somebody has interrupted it. */
  | { readonly status: 'ended'; readonly reply: Reply };

/** Runs a component once. Cold: emits one, and completes, or errors. */
export type Work = (scope: Scope) => Observable<Worked>;

/** Says what came of a component that only goes on. */
export const done = (output: Output): Worked => ({ status: 'done', output });

/** What the call of a component is made with: ids are places in the flow, the same on a resumed run. */
export const childCall = (id: string, { options, speaks, place }: Scope): CallOptions => {
  const { parent } = options;
  if (parent === undefined) return options;
  const callId = `${parent.callId}/${parent.toolUseId}/${place}${id}`;
  return { ...(speaks ? options : silent(options)), callId };
};

/** What came of a call. */
export const workedBy = (reply: Reply, outputOf: (reply: Reply) => Output): Worked => {
  switch (reply.reason) {
    case 'interrupted':
      return { status: 'ended', reply };
    case 'suspended':
      throw new MillraceError(
        'config',
        'One of its tools has suspended the call, and a flow cannot be resumed. Use a tool that answers at once, or approves by itself.',
      );
    case 'refused':
      throw new MillraceError('refused', 'Its model would not answer.');
    default:
      return done(outputOf(reply));
  }
};

/** The text of a reply as an output: what else it says is for user interfaces. */
export const textOutput = (reply: Reply): Output => ({ text: textOf(reply), reply });
