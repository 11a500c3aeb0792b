/** How what comes of a command is printed. */
export interface PrintArguments {
  readonly color: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
}

/** Where runs are written down. */
export interface StoreArguments {
  /** A directory or the URL of a database; false: nowhere; undefined: what the environment says. */
  readonly store: string | false | undefined;
}

/** How an agent answers. */
export interface AnswerArguments extends PrintArguments, StoreArguments {
  readonly maxIterations: number | undefined;
  /** Empty where none was given. */
  readonly model: string;
  /** Days for which runs are kept; undefined where none was given. */
  readonly keepDays: number | undefined;
}

/** A question, or a chat. */
export interface AskArguments extends AnswerArguments {
  readonly command: 'ask';
  /** Empty where none was given; `-` is the standard input. */
  readonly question: string;
  /** The name of a conversation; empty where none was given. */
  readonly session: string;
}

/** The list of runs, or one of them. */
export interface RunsArguments extends PrintArguments, StoreArguments {
  readonly command: 'runs';
  /** The run that is shown; empty: the list. */
  readonly run: string;
  /** How many are listed. */
  readonly limit: number;
}

/** A run that is played back. */
export interface ReplayArguments extends PrintArguments, StoreArguments {
  readonly command: 'replay';
  readonly run: string;
  readonly speed: number;
  readonly follow: boolean;
}

/** A run that goes on. */
export interface ResumeArguments extends AnswerArguments {
  readonly command: 'resume';
  readonly run: string;
}

/** A run that is made of a part of another. */
export interface ForkArguments extends AnswerArguments {
  readonly command: 'fork';
  readonly run: string;
  /** The first step that is done anew; empty: the beginning, with another question. */
  readonly at: string;
  /** What is asked instead; empty where none was given. */
  readonly question: string;
  /** What kept steps are to have given instead, by their ids. */
  readonly edits: Readonly<Record<string, string>>;
}

/** What the command is asked to do. */
export type Arguments =
  AskArguments | RunsArguments | ReplayArguments | ResumeArguments | ForkArguments;
