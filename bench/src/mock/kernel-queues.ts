import { readFileSync } from 'node:fs';

/** What lies in the buffers of the system between a server and its client, in bytes. */
export interface KernelQueues {
  readonly sendQueue: number;
  readonly receiveQueue: number;
}

/** Reads the queues of a connection on loopback. Undefined where the system does not tell: only Linux does. */
export const kernelQueues = (serverPort: number, clientPort: number): KernelQueues | undefined => {
  try {
    return queuesIn(readFileSync('/proc/net/tcp', 'utf8'), serverPort, clientPort);
  } catch {
    return undefined;
  }
};

/** Finds both ends of a connection in the table of the system (https://docs.kernel.org/networking/proc_net_tcp.html). */
export const queuesIn = (
  table: string,
  serverPort: number,
  clientPort: number,
): KernelQueues | undefined => {
  const lines = table.split('\n').map((line) => line.trim().split(/\s+/));
  const endOf = (own: number, other: number) =>
    lines.find(([, local, remote]) => portOf(local) === own && portOf(remote) === other)?.[4];
  const [sent] = endOf(serverPort, clientPort)?.split(':') ?? [];
  const [, received] = endOf(clientPort, serverPort)?.split(':') ?? [];
  return sent === undefined || received === undefined
    ? undefined
    : { sendQueue: Number.parseInt(sent, 16), receiveQueue: Number.parseInt(received, 16) };
};

const portOf = (address = ''): number => Number.parseInt(address.split(':')[1] ?? '', 16);
