export interface Fifo<T> {
  readonly size: number;
  push(value: T): void;
  shift(): T | undefined;
}

/** Creates a list with a `shift` in constant time, unlike that of an array. */
export const createFifo = <T>(): Fifo<T> => new List();

/** A class: there are several for each open stream, and an object literal with a getter takes four times as much. */
class List<T> implements Fifo<T> {
  private values: T[] = [];
  private first = 0;

  get size(): number {
    return this.values.length - this.first;
  }

  push(value: T): void {
    this.values.push(value);
  }

  shift(): T | undefined {
    if (this.first === this.values.length) return undefined;
    const value = this.values[this.first];
    this.first += 1;
    if (this.first > this.values.length / 2) {
      this.values = this.values.slice(this.first);
      this.first = 0;
    }
    return value;
  }
}
