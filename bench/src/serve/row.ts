import type { Table } from '../table.js';

/** How the rows of the server are measured. */
export interface ServeBench {
  readonly rounds: number;
  /** A quick look: little is done, and the numbers say nothing. */
  readonly isSmall: boolean;
  readonly onProgress: (what: string) => void;
}

/** The result of a row. */
export interface ServeReport {
  readonly tables: readonly Table[];
  /** Everything that was measured, as plain JSON. */
  readonly raw: unknown;
}

/** One thing that is measured of the server. */
export interface ServeRow {
  readonly name: string;
  readonly about: string;
  readonly run: (bench: ServeBench) => Promise<ServeReport>;
}
