import { equal, match } from 'node:assert/strict';
import type { ServeOptions } from '@millrace/server/node';
import { words } from '../world.js';
import { type ConversationRows, refusedWith, shows, twoAnswers } from './scene.js';

const taking: ServeOptions = { unknownHistory: 'take' };

const who = [
  { role: 'user', text: 'I am Ann.' },
  { role: 'assistant', text: 'Hello Ann.' },
] as const;

/** Requests that arrive again, or at a server that does not know the conversation. */
export const requestRows: ConversationRows = {
  doubleSubmit: {
    name: 'the same request twice',
    about: 'A request arrives twice: together, later, and after a restart. It is one call.',
    play: async ({ world, keeping, restart, open }) => {
      const tab = await open();
      world.sendTwice(true);
      await tab.ask('Hi');
      world.sendTwice(false);
      shows(tab, 'Hi', 'A0');
      equal(world.requests.length, 1, 'two at the same time are one call');
      const isOneCall = async (): Promise<void> => {
        const { status, body } = await world.repeat(0);
        equal(status, 200, body);
        match(body, /A0/u);
        equal(world.requests.length, 1, 'a later one is no other call');
      };
      await isOneCall();
      if (keeping === 'files') {
        await restart();
        await isOneCall();
      }
      await tab.ask('1?');
      const { body } = await world.repeat(0);
      match(body, /A0/u);
      equal(world.requests.length, 2, 'one with later turns is no other call');
      shows(await open({ like: tab }), 'Hi', 'A0', '1?', 'A1');
      return 'one call';
    },
  },
  doubleWhileWriting: {
    name: 'the same request while it is answered',
    about: 'A request arrives again in the middle of its answer. Both get all of it.',
    play: async ({ world, open }) => {
      const tab = await open();
      const asking = tab.ask(`${words.slowly} Hi`);
      await world.writing(1);
      const repeating = world.repeat();
      await new Promise((resolve) => setTimeout(resolve, 100));
      world.release();
      const { status, body } = await repeating;
      equal(status, 200, body);
      match(body, /A0/u);
      await asking;
      shows(tab, `${words.slowly} Hi`, 'A0');
      equal(world.requests.length, 1);
      return 'one call';
    },
  },

  clientHistory: {
    name: 'history that only the client has',
    about: 'The server does not know the conversation. It refuses the question, with its head.',
    play: async (scene) => {
      const tab = await scene.open({ history: who });
      await refusedWith(scene, tab, () => tab.ask('Who am I?'));
      return 'refused';
    },
  },
  takenHistory: {
    name: 'history that is taken over',
    about: "With `unknownHistory: 'take'`, the model reads what the client shows.",
    options: taking,
    play: async ({ open }) => {
      const tab = await open({ history: who });
      await tab.ask('Who am I?');
      shows(tab, 'I am Ann.', 'Hello Ann.', 'Who am I?', 'A0');
      await tab.ask('1?');
      shows(tab, 'I am Ann.', 'Hello Ann.', 'Who am I?', 'A0', '1?', 'A1');
      return 'answered';
    },
  },
  restart: {
    name: 'restart without a store',
    about: 'The server has forgotten the conversation. No turn is answered without it.',
    keepings: ['process'],
    play: async (scene) => {
      const { restart, open } = scene;
      const tab = await twoAnswers(open);
      await restart();
      await refusedWith(scene, tab, () => tab.ask('2?'));
      const other = await open();
      await other.ask('Hello');
      shows(other, 'Hello', 'A2');
      return 'refused';
    },
  },
  restartTaken: {
    name: 'restart without a store, taken over',
    about: "With `unknownHistory: 'take'`, the client continues, and regenerates.",
    keepings: ['process'],
    options: taking,
    play: async ({ restart, open }) => {
      const tab = await twoAnswers(open);
      await restart();
      await tab.ask('2?');
      shows(tab, 'Hi', 'A0', '1?', 'A1', '2?', 'A2');
      await tab.regenerate();
      shows(tab, 'Hi', 'A0', '1?', 'A1', '2?', 'A3');
      return 'answered';
    },
  },
  restartIds: {
    name: 'restart with a store',
    about: 'A tab continues with its own ids: it asks, regenerates, and edits.',
    keepings: ['files'],
    play: async ({ restart, open }) => {
      const tab = await twoAnswers(open);
      await restart();
      await tab.regenerate();
      shows(tab, 'Hi', 'A0', '1?', 'A2');
      await restart();
      await tab.edit('1?', '1b?');
      shows(tab, 'Hi', 'A0', '1b?', 'A3');
      await restart();
      await tab.ask('2?');
      shows(tab, 'Hi', 'A0', '1b?', 'A3', '2?', 'A4');
      return 'three branches';
    },
  },
  restartStored: {
    name: 'restart in the middle of an answer',
    about: 'The server resumes the call, and the client regenerates it meanwhile.',
    keepings: ['files'],
    play: async ({ world, restart, open }) => {
      const tab = await open();
      await tab.ask('Hi');
      const asking = tab.ask(`${words.slowly} 1?`).catch(() => undefined);
      await world.writing(1);
      await restart();
      await asking;
      await world.writing(1);
      const releasing = setInterval(() => world.release(), 50);
      try {
        await tab.regenerate();
      } finally {
        clearInterval(releasing);
      }
      shows(tab, 'Hi', 'A0', `${words.slowly} 1?`, 'A3');
      return 'regenerated';
    },
  },
};
