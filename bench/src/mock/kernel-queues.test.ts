import { expect, it } from '@jest/globals';
import { queuesIn } from './kernel-queues.js';

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:1F90 0100007F:C350 01 00010000:00000007 01:00000014 00000000     0        0 2 4
   2: 0100007F:C350 0100007F:1F90 01 00000003:00000A00 00:00000000 00000000     0        0 3 1
`;

it('finds what has been sent and what has been received at the two ends of a connection', () => {
  expect(queuesIn(table, 8_080, 50_000)).toEqual({ sendQueue: 65_536, receiveQueue: 2_560 });
});

it('finds nothing of another one', () => {
  expect(queuesIn(table, 8_080, 50_001)).toBeUndefined();
  expect(queuesIn('', 8_080, 50_000)).toBeUndefined();
});
