import { createElement, Fragment, type ReactNode } from 'react'

/** Renders items that never change places, and so need no keys. */
export function sequence<Item>(items: readonly Item[], render: (item: Item) => ReactNode): ReactNode {
  return createElement(Fragment, null, ...items.map(render))
}
