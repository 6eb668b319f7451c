/** Next wants a layout, though no page is here. */
export default function Layout({ children }) {
  return children
}
