import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type Ask, isTell, type Tell } from './ipc.js';
import type { Scenario, SeenRequest } from './scenario.js';

/** A process that plays vendors. */
export interface FaultServer {
  /** Plays a scenario at an address of its own. Any number can be on at the same time. */
  play(scenario: Scenario): Promise<Played>;
  /** Ends the process, and every connection with it. Resolves when it has gone. */
  close(): Promise<void>;
}

/** A scenario that is being played. */
export interface Played {
  /** The base URL to give to a client: for OpenAI's wires in place of `…/v1`, for Anthropic's in place of the origin. */
  readonly url: string;
  /** The requests so far, oldest first, also those that are still being answered. */
  requests(): Promise<readonly SeenRequest[]>;
  /** Waits until the request at an index has come. */
  arrived(index: number): Promise<SeenRequest>;
  /** Waits until the request at an index has come and its response is over, or its client has left. */
  closed(index: number): Promise<SeenRequest>;
  /** Waits until all requests that have come are over. */
  settled(): Promise<readonly SeenRequest[]>;
}

type Question = Ask extends infer One ? (One extends Ask ? Omit<One, 'ask'> : never) : never;

/**
 * Starts a server on loopback, in a process of its own, so that neither side's busy loop or crash is the other's. It
 * needs this package to be built. The process ends with `close()`, or with the process that started it.
 */
export const startFaultServer = async (): Promise<FaultServer> => {
  const child = fork(new URL('../dist/process.js', import.meta.url), { execArgv: [] });
  const questions = createQuestions(child);
  const origin = await questions.origin;
  let played = 0;
  return {
    play: async (scenario) => {
      played += 1;
      const id = String(played);
      await questions.ask({ type: 'play', id, scenario });
      return {
        url: `${origin}/${id}`,
        requests: () => questions.ask({ type: 'requests', id }),
        arrived: async (index) => only(await questions.ask({ type: 'arrived', id, index }), index),
        closed: async (index) => only(await questions.ask({ type: 'closed', id, index }), index),
        settled: () => questions.ask({ type: 'closed', id }),
      };
    },
    close: async () => {
      if (!child.connected) return;
      const gone = once(child, 'exit');
      child.disconnect();
      await gone;
    },
  };
};

interface Questions {
  readonly origin: Promise<string>;
  ask(question: Question): Promise<readonly SeenRequest[]>;
}

interface Waiting {
  readonly resolve: (requests: readonly SeenRequest[]) => void;
  readonly reject: (error: Error) => void;
}

/** What the process is asked, and what it says to that. All that is open fails when the process ends. */
const createQuestions = (child: ChildProcess): Questions => {
  const waiting = new Map<number, Waiting>();
  let asked = 0;
  const heard = ({ ask, requests }: Extract<Tell, { type: 'reply' }>): void => {
    waiting.get(ask)?.resolve(requests);
    waiting.delete(ask);
  };
  const origin = new Promise<string>((resolve, reject) => {
    child.on('message', (message) => {
      if (!isTell(message)) return;
      if (message.type === 'listening') resolve(message.origin);
      else heard(message);
    });
    child.on('exit', (code) => {
      const ended = new Error(`The fault server has ended (exit code ${code ?? 'none'}).`);
      reject(ended);
      waiting.forEach(({ reject: fail }) => fail(ended));
      waiting.clear();
    });
  });
  return {
    origin,
    ask: (question) =>
      new Promise((resolve, reject) => {
        asked += 1;
        waiting.set(asked, { resolve, reject });
        child.send({ ask: asked, ...question }, (error) => {
          if (error !== null) reject(error);
        });
      }),
  };
};

const only = (requests: readonly SeenRequest[], index: number): SeenRequest => {
  const request = requests[index];
  if (request === undefined) throw new Error(`No request has come at index ${index}.`);
  return request;
};
