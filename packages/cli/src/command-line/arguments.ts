export interface PrintArguments {
  readonly color: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
}

export interface StoreArguments {
  /** A directory or the URL of a database. False records nothing; undefined uses the environment. */
  readonly store: string | false | undefined;
}

export interface PricesArguments {
  /** The path of a JSON file with prices; empty if not given. */
  readonly prices: string;
}

export interface AnswerArguments extends PrintArguments, StoreArguments, PricesArguments {
  readonly maxIterations: number | undefined;
  /** Empty if not given. */
  readonly model: string;
  /** Days to keep runs; undefined if not given. */
  readonly keepDays: number | undefined;
}

/** A question, or a chat. */
export interface AskArguments extends AnswerArguments {
  readonly command: 'ask';
  /** Empty if not given; `-` stands for stdin. */
  readonly question: string;
  /** The name of a conversation; empty if not given. */
  readonly session: string;
}

export interface RunsArguments extends PrintArguments, StoreArguments {
  readonly command: 'runs';
  /** The id of the run to show; empty for the list. */
  readonly run: string;
  /** Maximum number of listed runs. */
  readonly limit: number;
}

export interface ReplayArguments extends PrintArguments, StoreArguments {
  readonly command: 'replay';
  readonly run: string;
  readonly speed: number;
  readonly follow: boolean;
}

export interface ResumeArguments extends AnswerArguments {
  readonly command: 'resume';
  readonly run: string;
}

export interface ForkArguments extends AnswerArguments {
  readonly command: 'fork';
  readonly run: string;
  /** The first step to repeat; empty to start over with another question. */
  readonly at: string;
  /** The replaced question; empty if not given. */
  readonly question: string;
  /** The replaced results of kept steps, by step id. */
  readonly edits: Readonly<Record<string, string>>;
}

export interface McpArguments extends Pick<PrintArguments, 'color'> {
  readonly command: 'mcp';
  /** Whether to serve the assistant as well. */
  readonly agent: boolean;
  /** The directory whose files may be read; empty if not given. */
  readonly directory: string;
  /** The port to listen on, 0 for a free one. Undefined serves over stdin and stdout. */
  readonly http: number | undefined;
  /** Empty if not given. */
  readonly model: string;
  readonly maxIterations: number | undefined;
}

export interface ServeArguments
  extends Pick<PrintArguments, 'color'>, StoreArguments, PricesArguments {
  readonly command: 'serve';
  readonly port: number;
  /** Empty if not given. */
  readonly model: string;
  readonly maxIterations: number | undefined;
  readonly page: boolean;
  readonly devtools: boolean;
}

export interface DevtoolsArguments extends Pick<PrintArguments, 'color'>, StoreArguments {
  readonly command: 'devtools';
  /** Undefined for the usual port, or a free one. */
  readonly port: number | undefined;
  /** The model of forks; empty if not given. */
  readonly model: string;
}

export interface FlowArguments extends PrintArguments, PricesArguments {
  readonly command: 'flow';
  readonly action: 'run' | 'check' | 'picture';
  /** The path of the document. */
  readonly file: string;
  /** The format of the document. */
  readonly from: 'millrace' | 'ragflow';
  /** The input of the flow; empty if not given; `-` stands for stdin. */
  readonly question: string;
  /** Whether to show the components while they run. */
  readonly live: boolean;
  /** The answers of people, by component. */
  readonly answers: Readonly<Record<string, string>>;
  /** The directory whose Markdown files all retrievers search; empty if not given. */
  readonly documents: string;
  /** Empty if not given. */
  readonly model: string;
}

export interface EvalArguments extends Pick<PrintArguments, 'color' | 'json'> {
  readonly command: 'eval';
  /** The paths of modules whose default export is an evaluation. */
  readonly files: readonly string[];
  /** Whether to write the baselines. */
  readonly update: boolean;
  /** How far scores and pass rates may fall; undefined for the default. */
  readonly tolerance: number | undefined;
  /** By which part tokens may grow; undefined for any. */
  readonly tokenTolerance: number | undefined;
}

export interface InitArguments extends Pick<PrintArguments, 'color'> {
  readonly command: 'init';
  /** The arguments after the name of the command. */
  readonly argv: readonly string[];
}

export type Arguments =
  | AskArguments
  | RunsArguments
  | ReplayArguments
  | ResumeArguments
  | ForkArguments
  | McpArguments
  | ServeArguments
  | DevtoolsArguments
  | FlowArguments
  | EvalArguments
  | InitArguments;
