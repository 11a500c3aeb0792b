import type { Socket } from 'node:net';
import { isRecord } from '../is-record.js';
import { now } from '../one-clock.js';
import { kernelQueues } from './kernel-queues.js';
import type { StreamMark } from './seen.js';

/** Milliseconds between two marks. */
const markEvery = 10;

/** Marks how far a stream has come until its socket closes, into the list that it returns. Empty where the system does not tell. */
export const watchStream = (socket: Socket): readonly StreamMark[] => {
  const marks: StreamMark[] = [];
  const before = handedOver(socket);
  const timer = setInterval(() => {
    const queues = kernelQueues(socket.localPort ?? 0, socket.remotePort ?? 0);
    if (queues) marks.push({ at: now(), written: handedOver(socket) - before, ...queues });
  }, markEvery);
  socket.once('close', () => clearInterval(timer));
  return marks;
};

/** `bytesWritten` counts what waits in this process, too: of a write that the system has taken in part, only the handle knows. */
const handedOver = (socket: Socket): number => {
  const handle: unknown = Reflect.get(socket, '_handle');
  const waiting = isRecord(handle) ? handle['writeQueueSize'] : undefined;
  return socket.bytesWritten - (typeof waiting === 'number' ? waiting : 0);
};
