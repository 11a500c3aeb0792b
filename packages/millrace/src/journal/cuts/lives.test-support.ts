import { expect } from '@jest/globals';
import { lastValueFrom } from 'rxjs';
import type { Agent, CallOptions, Input, MemoryFactory } from '../../index.js';
import { verifyEvents } from '../../testing/index.js';
import type { ResumeOptions } from '../resume-all.js';
import type { StoredRecord } from '../index.js';
import type { Cut } from './cut-driver.test-support.js';
import { type Life, live, type Process, type World } from './process.test-support.js';
import { type Session, sessions } from '../../layers/sessions/index.js';

/** A call that is cut. */
export interface SetUp {
  /** Makes the agent, as each process does. */
  readonly agent: (process: Process) => Agent;
  readonly input?: Input;
  /** What the call has of its own, and is given again. */
  readonly options?: (process: Process) => CallOptions & ResumeOptions;
  /** It is none of a session. Default: false. */
  readonly isBare?: boolean;
  /** Requests to models that can be lost with one cut. Default: 1. */
  readonly atOnce?: number;
  /** Makes the memory of its session. Default: that of the process. */
  readonly memory?: (process: Process) => MemoryFactory;
  /** Its memory keeps no tool calls, but for those that a failed call leaves (S10): a log that is full fails the call. Default: false. */
  readonly leavesToolCalls?: boolean;
  /** What was asked before, in the same session. Default: nothing. */
  readonly before?: readonly Input[];
}

/** The id of the call that is cut. */
export const callId = 'c';

/** Makes the call in a world, and cuts it where it is said. */
export const called = async (world: World, setUp: SetUp, cut?: Cut): Promise<Life> => {
  const { before = [], input = 'Go on.', isBare = false } = setUp;
  for (const [index, earlier] of before.entries()) {
    const over = await live(world, undefined, (process) => {
      const options = { callId: `before-${index}`, ...own(setUp, process) };
      return inSession(setUp, process).stream$(earlier, options);
    });
    expect(over.error).toBe(undefined);
  }
  world.asked.length = 0;
  return live(world, cut, (process) => {
    const options = { callId, ...own(setUp, process) };
    return isBare
      ? setUp.agent(process).stream$(input, options)
      : inSession(setUp, process).stream$(input, options);
  });
};

/** Goes on with the call in another process. */
export const resumed = (world: World, setUp: SetUp, cut?: Cut): Promise<Life> =>
  live(world, cut, (process) => {
    const whole = setUp.isBare === true ? setUp.agent(process) : inSession(setUp, process);
    return process.durable.resumeStream$(whole, callId, own(setUp, process)).pipe(verifyEvents());
  });

/** The session in which the call is made. */
const inSession = ({ agent, memory }: SetUp, process: Process): Session =>
  sessions(agent(process), { memory: memory?.(process) ?? process.memory }).open('s');

const own = ({ options }: SetUp, process: Process) => ({
  scheduler: process.scheduler,
  ...options?.(process),
});

/** What is written down of the call. */
export const written = async ({ driver }: World): Promise<readonly StoredRecord[]> =>
  lastValueFrom(driver.read$(callId), { defaultValue: [] });

/** Whether there is a call to go on with. */
export const hasBegun = async (world: World): Promise<boolean> =>
  (await written(world)).some(({ name }) => name === `${callId}/call`);
