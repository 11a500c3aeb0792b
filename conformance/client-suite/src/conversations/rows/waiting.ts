import { equal } from 'node:assert/strict';
import { words } from '../world.js';
import { type ConversationRows, shows, textsOf } from './scene.js';

/** Tool calls that wait while the person does something else, and parts that no one asked for. */
export const waitingRows: ConversationRows = {
  ignoredTool: {
    name: 'ignored client tool',
    about: 'The person asks instead of answering a card. The tool call is cancelled.',
    play: async ({ open }) => {
      const tab = await open();
      await tab.ask(`${words.pick} one`);
      await tab.ask('Never mind.');
      shows(tab, `${words.pick} one`, 'Never mind.', 'A1');
      await tab.ask('1?');
      shows(tab, `${words.pick} one`, 'Never mind.', 'A1', '1?', 'A2');
      return 'answered';
    },
  },
  answeredTool: {
    name: 'client tool, shown once',
    about: 'The person answers a card, after a restart if there is a store. The tool ran once.',
    play: async ({ keeping, restart, open }) => {
      const tab = await open();
      await tab.ask(`${words.pick} one`);
      equal(tab.toolCalls(), 1);
      if (keeping === 'files') await restart();
      await tab.bring('Red.');
      shows(tab, `${words.pick} one`, 'A1');
      equal(tab.toolCalls(), 1);
      await tab.ask('1?');
      shows(tab, `${words.pick} one`, 'A1', '1?', 'A2');
      equal(tab.toolCalls(), 1);
      return 'one call';
    },
  },
  answeredTwice: {
    name: 'client tool, answered twice',
    about: 'Two tabs answer the same card. The model reads one of both results.',
    play: async ({ world, open }) => {
      const tab = await open();
      await tab.ask(`${words.pick} one`);
      const other = await open({ like: tab });
      await tab.bring('Red.');
      await other.bring('Blue.');
      const isRefused = other.error() !== undefined;
      equal(world.requests.length, isRefused ? 2 : 3);
      await tab.ask('1?');
      shows(tab, `${words.pick} one`, 'A1', '1?', isRefused ? 'A2' : 'A3');
      return isRefused ? 'refused' : 'a branch';
    },
  },
  lateAnswer: {
    name: 'late answer of a card',
    about: 'Another tab answers the card after that. It does no harm.',
    play: async ({ world, open }) => {
      const tab = await open();
      await tab.ask(`${words.pick} one`);
      const late = await open({ like: tab });
      await tab.ask('Never mind.');
      await late.bring('Red.');
      const isRefused = late.error() !== undefined;
      equal(world.requests.length, isRefused ? 2 : 3);
      const answers = textsOf(tab);
      await tab.ask('1?');
      shows(tab, ...answers, '1?', isRefused ? 'A2' : 'A3');
      return isRefused ? 'refused' : 'a branch';
    },
  },

  stopped: {
    name: 'stop, then a question',
    about: 'The answer is stopped in the middle. The model reads what the client shows of it.',
    play: async ({ world, open }) => {
      const tab = await open();
      const asking = tab.ask(`${words.slowly} Hi`);
      await world.writing(1);
      await world.stop();
      await asking;
      shows(tab, `${words.slowly} Hi`, 'A0');
      await tab.ask('1?');
      shows(tab, `${words.slowly} Hi`, 'A0', '1?', 'A1');
      return 'the text so far';
    },
  },
  left: {
    name: 'stream closed, then a question',
    about:
      'The client closes the stream of an answer, and asks. The question waits for the answer.',
    play: async ({ world, open }) => {
      const tab = await open();
      const asking = tab.ask(`${words.slowly} Hi`);
      await world.writing(1);
      // The client has the text by then.
      while (textsOf(tab).at(-1) !== 'A0') await new Promise(setImmediate);
      await tab.leave?.();
      await asking;
      const next = tab.ask('1?');
      await new Promise((resolve) => setTimeout(resolve, 50));
      world.release();
      await next;
      shows(tab, `${words.slowly} Hi`, 'A0', '1?', 'A1');
      return 'answered';
    },
  },
  dataPart: {
    name: 'data part',
    about: 'A message has a data part beside its text. The text is answered.',
    play: async ({ open }) => {
      const tab = await open();
      await tab.askWith('Sum it up.', 'data');
      shows(tab, 'Sum it up.', 'A0');
      return 'answered';
    },
  },
  unknownPart: {
    name: 'unknown part',
    about: 'A message has a part that the server does not know. The text is answered.',
    play: async ({ open }) => {
      const tab = await open();
      await tab.askWith('Sum it up.', 'unknown');
      shows(tab, 'Sum it up.', 'A0');
      return 'answered';
    },
  },
};
