import { describe, expect, it } from '@jest/globals';
import { assistant, idsOf, used, user } from '../layers/fitting/conversation.test-support.js';
import { taskOf } from './prompt.js';

const history = [user('c1/input/0', 'Before?'), assistant('c1/1', 'Before.')];
const taskIn = (...messages: readonly ReturnType<typeof user>[]) =>
  idsOf(messages.filter(taskOf(messages, 'c2')));

describe('taskOf', () => {
  it('C2: is what the call was asked with, and what was said to it since', () => {
    const more = [
      ...used('c2/1', ''),
      user('c2/input/s0/0', 'And?'),
      user('c2/2/malformed', 'No.'),
    ];
    expect(taskIn(...history, user('c2/input/0', 'Now?'), ...more)).toEqual([
      'c2/input/0',
      'c2/input/s0/0',
    ]);
  });

  it('C2: is what was asked last, if a call only brings results; never feedback', () => {
    const resumed = [...history, ...used('c1/2', 'late')];
    expect(taskIn(...resumed)).toEqual(['c1/input/0']);
    expect(taskIn(...resumed, user('c2/1/emptyAnswer', 'Please answer.'))).toEqual(['c1/input/0']);
    const [asked] = used('c1/2', '');
    const brought = { ...used('x', 'late')[1], id: 'c2/input/0' };
    expect(taskIn(...history, asked, brought)).toEqual(['c1/input/0']);
    expect(taskIn()).toEqual([]);
  });
});
