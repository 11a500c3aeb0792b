import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn, setTimeout as after } from 'node:timers/promises';
import type { Bytes, Heartbeat, Pieces, ResponseScript, Step } from '../scenario.js';
import { cut } from './pieces.js';

/** Where a script is played. */
export interface Stage {
  readonly response: ServerResponse;
  /** Fills in what a text says of the request. */
  readonly fill: (text: string) => string;
  /** Hears how many bytes were sent. */
  readonly wrote: (bytes: number) => void;
  /** Hears that the script is about to break the response off. */
  readonly breakOff: () => void;
}

/** Plays the steps of a response until the last one, or until the client has left. Resolves then. */
export const play = async (script: ResponseScript, stage: Stage): Promise<void> => {
  for (const step of script) {
    if (stage.response.destroyed) return;
    await perform(step, stage);
  }
  if (!stage.response.destroyed) stage.response.end();
};

const perform = async (step: Step, stage: Stage): Promise<void> => {
  const { response, fill } = stage;
  switch (step.type) {
    case 'status': {
      const headers = Object.entries(step.headers ?? {}).map(([name, value]): [string, string] => [
        name,
        fill(value),
      ]);
      response.writeHead(step.code, Object.fromEntries(headers)).flushHeaders();
      return;
    }
    case 'bytes':
      return send(stage, bufferOf(step.bytes, fill), step.pieces ?? 'whole', step.times ?? 1);
    case 'wait':
      await after(step.ms);
      return;
    case 'reset':
      stage.breakOff();
      response.socket?.resetAndDestroy();
      return left(response);
    case 'hangUp':
      stage.breakOff();
      response.socket?.destroy();
      return left(response);
    case 'stall':
      return stall(stage, step.heartbeat);
    case 'forever':
      return flood(stage, bufferOf(step.bytes, fill));
  }
};

const bufferOf = (bytes: Bytes, fill: (text: string) => string): Buffer =>
  typeof bytes === 'string' ? Buffer.from(fill(bytes)) : Buffer.from(bytes.base64, 'base64');

const send = async (stage: Stage, bytes: Buffer, pieces: Pieces, times: number): Promise<void> => {
  const parts = cut(bytes, pieces);
  for (let time = 0; time < times; time += 1) {
    for (const part of parts) {
      if (stage.response.destroyed) return;
      await write(stage, part);
      if (pieces !== 'whole') await nextTurn();
    }
  }
};

/** Resolves when the bytes have been handed to the system, or the client has left. */
const write = ({ response, wrote }: Stage, bytes: Buffer): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      response.off('close', done);
      resolve();
    };
    response.on('close', done);
    response.write(bytes, done);
    wrote(bytes.length);
  });

const stall = async ({ response, wrote }: Stage, heartbeat?: Heartbeat): Promise<void> => {
  const timer =
    heartbeat &&
    setInterval(() => {
      response.write(heartbeat.bytes);
      wrote(Buffer.byteLength(heartbeat.bytes));
    }, heartbeat.everyMs);
  await left(response);
  clearInterval(timer);
};

const left = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => response.once('close', resolve));

const flood = async (stage: Stage, bytes: Buffer): Promise<void> => {
  // Many small pieces are sent as one: what is slow is the way to the system.
  const load = Buffer.concat(Array<Buffer>(Math.ceil(65_536 / bytes.length)).fill(bytes));
  while (!stage.response.destroyed) await write(stage, load);
};
