import { fork } from 'node:child_process';
import { once } from 'node:events';
import { type Answer, toPath } from './answer.js';
import { readSeen, type SeenRequest } from './seen-request.js';

/** A process that answers as OpenAI's chat completions do. */
export interface AnswerServer {
  /** Gives an address at which the first request gets this answer, and all further ones a short one. */
  play(answer: Answer): Played;
  /** Ends the process, and every connection with it. Resolves when it has gone. */
  close(): Promise<void>;
}

/** An address with an answer of its own. */
export interface Played {
  /** The base URL to give to a client. */
  readonly url: string;
  /** What has come of its requests, oldest first. Waits until all that have come are over. */
  seen(): Promise<readonly SeenRequest[]>;
}

/**
 * Starts a server on loopback, in a process of its own, so that its memory and its busy loop are not the client's. It
 * needs this package to be built. The process ends with `close()`, or with the process that started it.
 */
export const startAnswerServer = async (): Promise<AnswerServer> => {
  const child = fork(new URL('../../dist/server/process.js', import.meta.url), { execArgv: [] });
  const origin = await new Promise<string>((resolve, reject) => {
    child.once('message', (said) => resolve(typeof said === 'string' ? said : ''));
    child.once('exit', (code) =>
      reject(new Error(`The server has ended (exit code ${code ?? 'none'}).`)),
    );
  });
  let played = 0;
  return {
    play: (answer) => {
      played += 1;
      const address = `${origin}/${played}`;
      return {
        url: `${address}/${toPath(answer)}/v1`,
        seen: async () => readSeen(await (await fetch(`${address}/seen`)).json()),
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
