/** One rule of a contract. Hand `name` and `run` to the test runner of your choice. */
export interface Check {
  readonly name: string;
  readonly run: () => Promise<void>;
}
