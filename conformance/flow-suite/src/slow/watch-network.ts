import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import { isRecord } from 'millrace/values';

/** Watches what this process reads from the network for its latest request. */
export interface NetworkWatch {
  /** Bytes that it has read, as far as they have come since the request was sent. */
  bytesRead(): number;
  stop(): void;
}

/** On this channel Node's `fetch` tells over which socket it sends a request. */
const channel = 'undici:client:sendHeaders';

/** Begins to watch. */
export const watchNetwork = (): NetworkWatch => {
  let socket: Socket | undefined;
  let before = 0;
  const onSend = (sent: unknown): void => {
    if (!isRecord(sent) || !(sent['socket'] instanceof Socket)) return;
    socket = sent['socket'];
    before = socket.bytesRead;
  };
  subscribe(channel, onSend);
  return {
    bytesRead: () => (socket?.bytesRead ?? 0) - before,
    stop: () => unsubscribe(channel, onSend),
  };
};
