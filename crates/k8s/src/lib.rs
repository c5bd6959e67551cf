//! Engine: Kubernetes objects. Renders what a plan wants, observes what is there, applies the difference.
