import { equal } from 'node:assert/strict';
import type { ServeOptions } from '@millrace/server/node';
import type { Line, World } from './world.js';

/** A tab of a chat client: what a person can do in it. Each action resolves once its answer has ended, well or not. */
export interface Tab {
  /** The conversation on the screen, oldest first. */
  readonly shown: () => readonly Line[];
  /** What the client says is wrong since the last action. */
  readonly error: () => string | undefined;
  readonly ask: (text: string) => Promise<void>;
  /** Asks with a part beside the text: one that the client's program invented, or one that only other software knows. */
  readonly askWith: (text: string, part: 'data' | 'unknown') => Promise<void>;
  /** Generates the last answer again. */
  readonly regenerate: () => Promise<void>;
  /** Replaces the question with this text. */
  readonly edit: (question: string, text: string) => Promise<void>;
  /** Shows the branch with this answer. */
  readonly show: (answer: string) => Promise<void>;
  /** Answers the card of the tool of the client that is on the screen. */
  readonly bring: (output: string) => Promise<void>;
  /** How often the client was told to run a tool. */
  readonly toolCalls: () => number;
  /** Closes the stream of the running answer; absent if the client needs it to go on. */
  readonly leave?: () => Promise<void>;
  readonly close: () => void;
}

export interface Opening {
  /** The tab that the person has seen it in; for clients that load nothing. */
  readonly like?: Tab | undefined;
  /** A conversation that the server does not know. */
  readonly history?: readonly Line[];
  readonly chatId?: string;
}

/** The id of the conversation. */
export const chat = 'chat-1';

/** A client, for conversations in more than one tab. */
export interface Client {
  readonly name: string;
  readonly version: string;
  readonly aiSdk?: 6 | 7;
  /** What the server must be told about this client. */
  readonly options?: ServeOptions;
  /** Opens a tab, which loads the conversation as it is. */
  readonly open: (world: World, opening?: Opening) => Promise<Tab>;
  /** If the server has no list of its conversations by id: opens each answer that a tab has seen, to continue after it. */
  readonly keepsBranches?: boolean;
  /** The status of a refusal to continue after something that the server does not know. Default: 409, with the head. */
  readonly refusal?: number;
  /** The rows that it cannot play, each with the reason. */
  readonly missing?: Readonly<Record<string, string>>;
}

/** Fails if the client reports an error. */
export const isWell = (tab: Tab, answer?: string): void => {
  equal(tab.error(), undefined);
  if (answer !== undefined) equal(tab.shown().at(-1)?.text, answer);
};
